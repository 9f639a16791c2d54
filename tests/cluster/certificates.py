"""The lab's certificate authority, and the certificates by which the components know each other."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.settings import API_SERVICE_ADDRESS, NODE_ADDRESS

_VALIDITY = dt.timedelta(days=365)
_CLOCK_SKEW = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Identity:
    """Whom a certificate stands for: Kubernetes takes common name as user, organization as group."""

    file: str
    common_name: str
    organization: str | None = None
    hosts: tuple[str, ...] = ()


def identities(node_name: str) -> tuple[Identity, ...]:
    """Every certificate of a node of that name."""
    return (
        Identity("etcd", "etcd", hosts=("127.0.0.1",)),
        Identity("etcd-client", "kube-apiserver"),
        Identity(
            "apiserver",
            "kube-apiserver",
            hosts=(
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local",
                "localhost",
                "127.0.0.1",
                NODE_ADDRESS,
                API_SERVICE_ADDRESS,
            ),
        ),
        Identity("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
        Identity("front-proxy-client", "front-proxy-client"),
        Identity("admin", "lab-admin", "system:masters"),
        Identity("controller-manager", "system:kube-controller-manager"),
        Identity("scheduler", "system:kube-scheduler"),
        Identity("proxy", "system:kube-proxy"),
        Identity("kubelet", f"system:node:{node_name}", "system:nodes", (node_name, NODE_ADDRESS)),
    )


def create(folder: Path, node_name: str) -> None:
    """Writes ca.crt, ca.key, each identity's FILE.crt and FILE.key, the service accounts' sa.key, sa.pub."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    now = dt.datetime.now(dt.UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "llamapool-lab-ca")])
    authority = (
        _builder(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    _write_key(folder / "ca.key", authority_key)
    (folder / "ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    for identity in identities(node_name):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(identity, key, authority, now).sign(authority_key, hashes.SHA256())
        _write_key(folder / f"{identity.file}.key", key)
        (folder / f"{identity.file}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    service_account_key = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / "sa.key", service_account_key)
    (folder / "sa.pub").write_bytes(
        service_account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _certificate(
    identity: Identity, key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, now: dt.datetime
) -> x509.CertificateBuilder:
    name = [x509.NameAttribute(NameOID.COMMON_NAME, identity.common_name)]
    if identity.organization:
        name.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, identity.organization))
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = _builder(x509.Name(name), authority.subject, key, now)
    if identity.hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([_general_name(host) for host in identity.hosts])
        builder = builder.add_extension(names, critical=False)
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
