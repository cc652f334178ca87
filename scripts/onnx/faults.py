"""What can go wrong, in the words of the library: what (where); the rule; what to change."""


class ImportFault(Exception):
    """A file, an argument or a model as a whole that cannot be used."""

    def __init__(self, what, rule, change):
        super().__init__(f"lrcnn: {what}; {rule}; {change}")


class Refused(Exception):
    """A node that cannot become a layer. Its text says why."""


class NotExpressible(Exception):
    """A model with such nodes. `nodes`: pairs of node and reason."""

    def __init__(self, nodes):
        super().__init__(f"{len(nodes)} nodes")
        self.nodes = nodes
