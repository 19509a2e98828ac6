"""Makes pictures of most kinds, with whatever Bokeh, IPython and ipywidgets are here."""

import cypresskit as ck

report = ck.simulate("sgemm_tn", 256)
players = [
    ck.draw.register_block("sgemm_tn"),
    ck.draw.wavefronts(report),
    ck.draw.chip(report),
    ck.draw.timeline(ck.host.five_stage(4096, 4096, 1024, ck.host.Machine())),
    ck.teach.why_blocks.roofline(),
    ck.draw.bundles(),
]
for player in players:
    page = player._repr_mimebundle_()["text/html"]
    assert "<cypresskit-picture" in page, type(player)
controls = ck.draw.interactive(lambda n: ck.draw.register_block(f"sgemm_{n}"), n=["nn", "tn"])
assert controls._repr_mimebundle_()
print(len(players), "pictures and their controls are made")
