"""Storms of real faults on the node, minutes each; ``make test-long`` runs them inside it."""

from tests.e2e.conftest import _installed, create, kubectl, operator, pytest_configure

__all__ = ["_installed", "create", "kubectl", "operator", "pytest_configure"]
