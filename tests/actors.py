"""What acts in a test in the place of a workbench's process, and what it says."""

from cypresskit.editing.edit_history import Edit

SETTINGS = {"like": "sgemm_naive", "n": 128}
CARD = {
    "bundles_per_iteration": 3,
    "gprs": 4,
    "wavefronts": 10,
    "fetches": 2,
}


FIGURES = {
    "code": {"card": CARD},
    "verdict": {"is_correct": False, "message": "C is wrong, says the actor"},
    "clocks": {"gflops": 5.0, "size": [128] * 3, "bound": "ALU"},
}


def answer_job(job):
    """What a process says of a job."""
    edit = {"edit": job["edit"], "job": job["number"]}
    for part in job["parts"]:
        yield {"type": "working", "part": part} | edit
        answer = {"type": "answer", "part": part, "of": job["text"]} | edit
        yield answer | FIGURES.get(part, {})
    yield {"type": "done"} | edit


class Actor:
    """In a process's place: says a message when a test lets it, hangs or dies when a test says so.
    Each part says of which text it is.
    """

    def __init__(self, hear):
        self.hear = hear
        self.job, self.saying = None, []
        self.stopped = self.dead = self.hangs = False

    @property
    def is_alive(self):
        return not (self.stopped or self.dead)

    def ask(self, job):
        assert job["parts"], "no process is asked for nothing"
        self.job = job

    def stop(self):
        self.stopped = True

    @property
    def can_speak(self):
        return self.is_alive and not self.hangs and bool(self.saying or self.job)

    def speak(self):
        """Say the next message."""
        if not self.saying:
            self.saying, self.job = list(answer_job(self.job)), None
        message = self.saying.pop(0)
        self.hear(message)


def judge(talk, gflops, right):
    """Add the text to the history, as judged and timed so."""
    talk.edits.add_judged(Edit(talk.text, is_correct=right, gflops=gflops, n=talk.step.n))
