"""The names of before, for notebooks that still call them. They go when the last notebook calls `explain`."""

from types import SimpleNamespace


class Looks(list):
    """The sentences of an explanation."""

    def __init__(self, explanation):
        self.explanation = explanation
        for number, one in enumerate(explanation.sentences):
            places = [place for place, role in enumerate(one.roles) if role in ("parse", "gold")]
            look = SimpleNamespace(
                prediction=one.prediction, sentence=one.prediction.sentence, spans=tuple(one.spans[k] for k in places),
                attention=one.attention, raw=one.sums[places], scores=one.scores[places],
            )  # fmt: skip
            if not explanation.head_labels:
                values = [getattr(one.parts, name).reshape(len(one.spans), -1)[places] for name in ("effect", "value")]
                look.exact, look.parts = values[0][:, :-1], values[1]
            else:
                table = explanation.table
                table = table[table["sentence"] == number]
                names = {"its first word": "first", "its last word": "last", "its boundaries": "boundary"}
                terms = table["part"].map(names | {"a constant": "constant"}).fillna("word")
                look.table = table.assign(term=terms).reset_index(drop=True)
            self.append(look)


def contributions(looks, gold=None):
    return looks.explanation.heads()


class OldParser:
    def look(self, texts, besides=None, **options):
        return Looks(self.explain(texts, gold=besides is not None, **options))

    terms = look

    def contributions(self, texts, norm="exact", **options):
        found = self.explain(texts, **options)
        return found.contrast() if found.against else found.table[found.table["role"] == "parse"]

    def attention(self, texts, label=None, **options):
        return self.explain(texts, **options).attention(label)

    def top_heads(self, texts, label=None, norm=None, count=1, **options):
        return self.explain(texts, label, **options).top(count, norm)


class OldResult:
    look = terms = property(lambda self: Looks(self.explain())[0])

    def contributions(self, norm="exact", against=None):
        found = self.explain(against=against)
        return found.contrast() if against else found.table[found.table["role"] == "parse"]

    def attention(self, label=None):
        return self.explain().attention(label)
