import tomllib
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from tests.cluster import certificates, components, configuration, settings
from tests.cluster.settings import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = settings.lab("test", {"LLAMAPOOL_LAB_STATE": str(tmp_path)})
    certificates.create(made.pki, made.node_name)
    configuration.write(made, cgroup_v2=False)
    return made


def _certificate(lab: Lab, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((lab.pki / f"{name}.crt").read_bytes())


def test_every_certificate_is_of_the_labs_authority_and_fits_its_key(lab: Lab) -> None:
    authority = _certificate(lab, "ca")
    for identity in certificates.identities(lab.node_name):
        certificate = _certificate(lab, identity.file)
        certificate.verify_directly_issued_by(authority)
        key = load_pem_private_key((lab.pki / f"{identity.file}.key").read_bytes(), password=None)
        assert key.public_key() == certificate.public_key()


def test_the_kubelet_is_known_as_its_node(lab: Lab) -> None:
    subject = _certificate(lab, "kubelet").subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:test-node"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"


def test_private_keys_are_for_their_owner_alone(lab: Lab) -> None:
    assert all(path.stat().st_mode & 0o077 == 0 for path in lab.pki.glob("*.key"))


def test_a_kubeconfig_needs_no_other_file(lab: Lab) -> None:
    content = yaml.safe_load(lab.kubeconfig.read_text())
    assert set(content["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert "certificate-authority-data" in content["clusters"][0]["cluster"]


def test_the_kubelet_keeps_its_pods_in_the_labs_cgroup(lab: Lab) -> None:
    assert configuration.kubelet(lab, cgroup_v2=True)["cgroupRoot"] == "/llamapool-lab-test"


@pytest.mark.parametrize("cgroup_v2", [True, False])
def test_the_kubelet_is_told_to_accept_cgroup_v1_only_where_it_is(lab: Lab, *, cgroup_v2: bool) -> None:
    assert ("failCgroupV1" in configuration.kubelet(lab, cgroup_v2=cgroup_v2)) is not cgroup_v2


def test_the_kubelet_answers_nobody_it_does_not_know(lab: Lab) -> None:
    content = configuration.kubelet(lab, cgroup_v2=True)
    assert content["authentication"]["anonymous"] == {"enabled": False}
    assert content["authorization"] == {"mode": "Webhook"}


def test_containerds_configuration_is_toml_with_the_pause_image(lab: Lab) -> None:
    content = tomllib.loads(configuration.containerd(lab.config / "cni"))
    assert content["plugins"]["io.containerd.grpc.v1.cri"]["sandbox_image"] == settings.PAUSE_IMAGE


def test_every_component_is_in_the_list_that_down_goes_through(lab: Lab) -> None:
    started = [each.name for each in components.components(lab, lab.state, gpus=1, audit=False)]
    assert started == list(components.COMPONENTS)


def test_an_audit_log_is_kept_only_when_asked_for(lab: Lab) -> None:
    def flags(*, audit: bool) -> str:
        commands = (each.command for each in components.components(lab, lab.state, gpus=1, audit=audit))
        return " ".join(str(word) for command in commands for word in command)

    assert "--audit-log-path" in flags(audit=True)
    assert "--audit-log-path" not in flags(audit=False)
