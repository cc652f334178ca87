"""What a disassembly by nvdisasm says of kernels."""
import re

LINE = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_]+)((?:\.[A-Za-z0-9_]+)*)\s*([^;]*);")
LABEL = re.compile(r"(\.L_[\w.]+):")
REGISTER = re.compile(r"\bR(\d+)\b((?:\.64)?)")
WIDTHS = {".128": 4, ".64": 2}


class Instruction:
    """One line: operation, its suffixes, its operands as text."""

    def __init__(self, operation, suffixes, operands):
        self.operation, self.suffixes, self.operands = operation, suffixes, operands

    def words(self):
        """Registers of 32 bits that a load from or a store to memory moves."""
        return next((words for suffix, words in WIDTHS.items() if suffix in self.suffixes), 1)

    def loads(self):
        return self.operation == "LDG"

    def written(self):
        """Registers that a load writes."""
        first = REGISTER.search(self.operands)
        return set(range(int(first[1]), int(first[1]) + self.words())) if first else set()

    def named(self):
        """Registers that it names, the second of a pair included where that is said."""
        found = set()
        for number, pair in REGISTER.findall(self.operands):
            found |= {int(number), int(number) + 1} if pair else {int(number)}
        if self.operation.startswith("D") or "F64" in self.suffixes:   # doubles are pairs without saying so
            found |= {n + 1 for n in found}
        return found


def kernels(text):
    """{mangled name: [instructions and labels, in order]} of a disassembly."""
    found = {}
    for part in re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition(":")
        code = found.setdefault(name, [])
        for line in body.splitlines():
            if label := LABEL.match(line):
                code.append(label[1])
            elif match := LINE.match(line):
                code.append(Instruction(*match.groups()))
    return found


def loops(code):
    """Lists of instructions from a label to a branch back to it."""
    places, found = {}, []
    for i, item in enumerate(code):
        if isinstance(item, str):
            places[item] = i
        elif item.operation == "BRA" and (target := re.search(r"`\((\.L_[\w.]+)\)", item.operands)) and target[1] in places:
            found.append([each for each in code[places[target[1]]:i + 1] if not isinstance(each, str)])
    return found


def bytes_in_flight(code):
    """The most bytes that are on their way from memory before one of them is used."""
    pending, most = [], 0
    for instruction in code:
        named = instruction.named()
        for i, registers in enumerate(pending):
            if registers & named:
                pending = [later for later in pending[i + 1:] if not later & named]
                break
        if instruction.loads():
            pending.append(instruction.written())
            most = max(most, 4 * sum(len(registers) for registers in pending))
    return most
