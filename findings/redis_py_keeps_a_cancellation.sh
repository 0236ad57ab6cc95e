#!/bin/sh
# Package:   redis 8.1.0 (PyPI), asyncio client with a socket_timeout, on CPython 3.11
# Behaviour: a task that is cancelled at the moment at which PubSub.subscribe has sent its command is not cancelled:
#            subscribe returns as if nothing had happened, and only Task.cancelling() still tells. The client waits for
#            the sending by asyncio.wait_for, which before Python 3.12 returns the result of a finished future instead
#            of raising CancelledError. Whoever cancels a task that then waits for a message, and waits for its end,
#            waits for ever. Without a socket_timeout the task is cancelled at each moment.
# Output:    with a timeout: cancelled at 1 of 4 moments, kept to itself at 3, where cancelling() is 1   (numbers may differ)
#            without a timeout: cancelled at all moments: True
# Run:       sh findings/redis_py_keeps_a_cancellation.sh   (needs python3.11 and PyPI; no Redis: the script has a server
#            that confirms what it is sent)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3.11 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet redis==8.1.0
cat > "$place/try.py" <<'PYTHON'
import asyncio

import redis.asyncio


async def confirm(reader, writer):
    """Confirm every command, and subscriptions as RESP 2 does, until the client leaves."""
    try:
        await answer(reader, writer)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def answer(reader, writer):
    count = 0
    while line := await reader.readline():
        words = []
        for _ in range(int(line[1:])):
            size = int((await reader.readline())[1:])
            words.append((await reader.readexactly(size + 2))[:-2])
        if words[0].upper() == b"SUBSCRIBE":
            for name in words[1:]:
                count += 1
                head = b"*3\r\n$9\r\nsubscribe\r\n"
                writer.write(head + b"$%d\r\n%s\r\n:%d\r\n" % (len(name), name, count))
        else:
            writer.write(b"+OK\r\n")
        await writer.drain()


async def cancel_at_each_moment(port, **settings):
    """Cancel a subscription after 0, 1, 2 … turns of the loop, until it is done before; return how each ended."""
    client = redis.asyncio.Redis(port=port, protocol=2, **settings)
    ends = []
    for turns in range(1000):
        pubsub = client.pubsub()
        await pubsub.subscribe("first")
        task = asyncio.ensure_future(pubsub.subscribe("second"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if not task.cancel():
            break
        (end,) = await asyncio.gather(task, return_exceptions=True)
        ends.append((isinstance(end, asyncio.CancelledError), task.cancelling()))
        await pubsub.aclose()
    await client.aclose()
    return ends


async def main():
    server = await asyncio.start_server(confirm, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    timed = await cancel_at_each_moment(port, socket_timeout=5)
    kept = [cancelling for cancelled, cancelling in timed if not cancelled]
    print(
        f"with a timeout: cancelled at {len(timed) - len(kept)} of {len(timed)} moments, "
        f"kept to itself at {len(kept)}, where cancelling() is {kept[0] if kept else None}"
    )
    plain = await cancel_at_each_moment(port, socket_timeout=None)
    print(f"without a timeout: cancelled at all moments: {all(cancelled for cancelled, _ in plain)}")
    assert kept and set(kept) == {1}
    assert plain and all(cancelled for cancelled, _ in plain)


asyncio.run(main())
PYTHON
"$place/venv/bin/python" "$place/try.py"
