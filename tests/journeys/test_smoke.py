"""The short story that runs on both backends: send, stream, resume, cancel, a webhook, and the admin's list."""

from __future__ import annotations

from tests.journeys.admin import TASKS, signed_in
from tests.journeys.hosts import Host
from tests.journeys.wire import folded, plain
from tests.support.execution.waiting import until
from tests.support.people import Person
from tests.support.push.inbox import inbox

DONE, CANCELED = "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"
PIECES = 40


async def test_a_task_is_carried_followed_resumed_and_cancelled_told_of_and_listed(
    site: Host, operator: Person
) -> None:
    async with plain(site.here, "demo") as demo, plain(site.there, "demo") as elsewhere:
        sent = await demo.send("echo hello")
        assert sent["status"]["state"] == DONE
        assert sent["artifacts"][0]["parts"] == [{"text": "hello"}]
        assert await elsewhere.get(sent["id"]) == sent

    async with plain(site.here, "ticker") as ticker, plain(site.there, "ticker") as elsewhere:
        async with ticker.stream(str(PIECES)) as stream:
            begun, *events = await stream.read(until=10)
        async with elsewhere.resume(stream.task_id, after=stream.last) as rest:
            events += await rest.read()
        task = await ticker.get(stream.task_id)
        assert [event.number for event in events] == list(range(2, rest.last + 1))
        assert folded(begun.said["task"], events).items() <= task.items()
        assert task["artifacts"][0]["parts"] == [{"text": f"#{i};"} for i in range(PIECES)]

    async with inbox() as receiver, plain(site.here, "courier") as courier:
        hook = {"taskPushNotificationConfig": {"url": receiver.url()}}
        canceled = await courier.start("Where? /nowhere", **hook)
        async with courier.resume(canceled) as stream:
            await stream.read(until=2)
            await courier.cancel(canceled)
            last = (await stream.read())[-1].said["statusUpdate"]["status"]["state"]
        assert last == CANCELED
        await until(lambda: "canceled" in receiver.said)
        assert receiver.said[0] == "working"

    async with signed_in(site.there, operator) as browser:
        for task_id, state in ((sent["id"], "completed"), (canceled, "canceled")):
            listed = (await browser.get(TASKS, params={"q": task_id})).text
            assert task_id[:8] in listed
            assert state in listed
