"""Pure builders of the objects that the operator keeps, as plain dicts; one module a kind."""
