"""JobRecord: every field says when it is known, so that a prediction cannot use what came later."""

from dataclasses import fields

from gpuwaste.slurm.accounting.job_record import JobRecord, KnownAt, known_at


def test_every_field_says_when_it_is_known() -> None:
    """No field is without its moment; the request is known at submission, the outcome at the end."""
    moments = {field.name: known_at(field.name) for field in fields(JobRecord)}
    assert set(moments.values()) == set(KnownAt)
    assert moments["req_tres"] is moments["user"] is KnownAt.SUBMIT
    assert moments["start"] is moments["nodes"] is KnownAt.START
    assert moments["state"] is moments["max_rss_b"] is moments["end"] is KnownAt.END
