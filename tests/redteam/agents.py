"""Many honest agents at once, each from an address of its own: prints how many of their requests were answered.

Arguments: port, agents. Each connects, sends a whole request at once and reads its answer, all of them together.
"""

import asyncio
import resource
import sys

ASK = b"GET /v1/health HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"


async def asked(port: int, number: int) -> bool:
    """Tell whether an agent's request was answered."""
    network, host = divmod(number, 254)
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(f"127.80.{network}.{host + 1}", 0)
        )
        writer.write(ASK)
        answer = await reader.read()
        writer.close()
    except OSError:
        return False
    return answer.startswith(b"HTTP/1.1 200 ")


async def main() -> None:
    """Ask with all of them."""
    port, agents = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_NOFILE, (agents + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(sum(await asyncio.gather(*(asked(port, number) for number in range(agents)))))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
