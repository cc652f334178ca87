"""What can go wrong, in the words of the library: what (where); the rule; what to change."""

# What is raised where attributes or inputs are not those that an operator has: absent, of other types, lengths or numbers.
DAMAGED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)


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
