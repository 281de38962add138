"""A site's own language model, which rewords one sentence at a time, over the OpenAI-compatible HTTP API."""

from typing import Final

import msgspec
from msgspec import Struct

from gpuwaste.core.errors import ConfigError, WireError
from gpuwaste.core.site_config import AnalyticsConfig
from gpuwaste.core.text import decoded, words_of
from gpuwaste.core.typed import decode
from gpuwaste.net.addresses import parse_endpoint, split_url
from gpuwaste.net.http import HttpExchange, HttpRequest, tls_context
from gpuwaste.views.rewrite import LONGEST, asked

_TIMEOUT_S: Final = 20.0  # for one sentence, on a server without a GPU
_MOST_B: Final = 256 << 10
_TOKENS: Final = 200
_OK: Final = 200
_TASK: Final = (
    "Reword the sentence of the user. Keep each {{placeholder}} as it is, with the words that belong to it. Add no "
    "number, no name, no comparison and no claim. Answer with that sentence only."
)
_EXAMPLES: Final = (
    (
        "Half of the files had {{half_size}} or less; one in ten was larger than {{large_size}}.",
        "Overall, half of the files had {{half_size}} or less. One in ten was larger than {{large_size}}.",
    ),
    (
        "Disks held {{held_size}} and {{spare_size}}.",
        "In this window, the disks have held {{held_size}} and {{spare_size}}.",
    ),
    (
        "{{read_share}} of the files were read; of {{lost_share}} nothing is left.",
        "Overall, {{read_share}} of the files were read; of {{lost_share}} nothing is left.",
    ),
)  # fmt: skip


class ModelAnswerError(WireError):
    """The model's server answered with something other than a text."""


class _Message(Struct):
    content: str


class _Choice(Struct):
    message: _Message


class _Completion(Struct):
    choices: list[_Choice]


class LanguageModel:
    """Sends requests to one model. Thread-safe. Raises ConfigError where its URL cannot be used."""

    def __init__(self, config: AnalyticsConfig, timeout_s: float = _TIMEOUT_S) -> None:
        """`timeout_s` is the limit for one sentence."""
        self.name = config.model
        self.timeout_s = timeout_s
        if not config.model:
            raise ConfigError("[analytics] model is empty: set it to the model's name on the server of model_url")
        try:
            parts = split_url(config.model_url, "model_url")
            self._endpoint = parse_endpoint(
                parts._replace(path="").geturl(), "is the language model running?", "model_url"
            )
        except ConfigError as error:
            raise ConfigError(
                f"[analytics] model_url {config.model_url!r}: expected http://HOST:PORT/v1 or https://HOST/v1"
            ) from error
        self._target = f"{parts.path.rstrip('/')}/chat/completions"
        self._tls = tls_context("") if self._endpoint.scheme == "https" else None

    def worded(self, rule: str, *, temperature: float = 0.0, seed: int = 0) -> str:
        """Return the model's version of a rule's sentence, unchecked. Raises as `completed` does."""
        return self.completed(_messages(rule), temperature=temperature, seed=seed)

    def completed(self, messages: list[dict[str, str]], *, temperature: float = 0.0, seed: int = 0) -> str:
        """Return the model's next message.

        Raises WireError where it does not answer in time; ModelAnswerError where the answer is not a text.
        """
        body = {
            "model": self.name,
            "messages": messages,
            "temperature": temperature,
            "seed": seed,
            "max_tokens": _TOKENS,
            "stream": False,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        exchange = HttpExchange(self._endpoint, self._tls, self.timeout_s, _MOST_B)
        try:
            answer = exchange.send(HttpRequest("POST", self._target, msgspec.json.encode(body), headers))
        except WireError as error:
            raise WireError(
                f"{self._endpoint.url}: {words_of(error.__cause__ or 'no complete answer in time')}"
            ) from error
        if answer.status != _OK:
            said = words_of(decoded(answer.body[:400]), 200)
            raise ModelAnswerError(f"{self._endpoint.url}{self._target}: HTTP {answer.status}: {said}")
        try:
            return decode(answer.body, _Completion).choices[0].message.content[-8 * LONGEST :]
        except (msgspec.MsgspecError, ValueError, IndexError, RecursionError) as error:
            raise ModelAnswerError(f"{self._endpoint.url}{self._target}: no chat completion in the answer") from error


def _messages(rule: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": _TASK}]
    for given, wanted in _EXAMPLES:
        messages += [{"role": "user", "content": given}, {"role": "assistant", "content": wanted}]
    return [*messages, {"role": "user", "content": asked(rule)}]
