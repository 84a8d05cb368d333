"""The locks of a run, as arguments of clients; holder.c describes the notation."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Resource:
    names: tuple
    fair: bool = False
    shared: bool = False
    permits: int = 0

    def modes(self):
        """The modes in which it is held, as in a history."""
        if self.shared:
            return ["reader", "writer"]
        if self.permits:
            return ["permit"]
        return ["fair"] if self.fair else ["several"] if len(self.names) > 1 else ["alone"]


def parse(text):
    name, _, how = text.partition("=")
    return Resource(tuple(name.split("+")), how == "fair", how == "shared",
                    int(how) if how.isdigit() else 0)


def modes(texts):
    """The modes of all these locks, each once."""
    return list(dict.fromkeys(mode for text in texts for mode in parse(text).modes()))
