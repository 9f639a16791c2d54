"""What people see of their models in a terminal, as `llamapool` or as a plugin of kubectl."""
