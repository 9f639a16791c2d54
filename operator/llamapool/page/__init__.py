"""The operator's status page: what the watch has brought, as plain HTML without a script."""
