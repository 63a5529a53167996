"""Drives a session with the client that openapi-python-client generated: `use_generated.py URL PAGE`."""

import sys

from generated_client import Client
from generated_client.api.default import acquire_lease, get_info, release_lease, step, take_screenshot
from generated_client.models import AcquireLeaseResponse200, Command, CommandVisitPage, Error, SessionOptions, StepBody
from generated_client.models import StepBodyIncludeItem, StepResponse200


def main(url: str, page: str) -> None:
    client = Client(base_url=url, headers={"x-api-key": "default_key"}, timeout=60)
    options = SessionOptions.from_dict({"viewport": {"width": 800, "height": 600}})
    lease = acquire_lease.sync(client=client, body=options, lifetime_mins=5, wait_secs=30)
    assert isinstance(lease, AcquireLeaseResponse200), lease
    address = {"instance_id": lease.instance_id, "node": lease.node}
    command = Command(visit_page=CommandVisitPage(url=page))
    include = [StepBodyIncludeItem.METADATA, StepBodyIncludeItem.SCREENSHOT]
    seen = step.sync(client=client, body=StepBody(**address, command=command, include=include))
    assert isinstance(seen, StepResponse200), seen
    assert seen.metadata and seen.metadata.title == "Log in", seen.metadata
    assert seen.screenshot and (seen.screenshot.width, seen.screenshot.height) == (800, 600), seen.screenshot
    image = take_screenshot.sync(client=client, **address)
    assert image and not isinstance(image, Error) and image.payload.read(4) == b"\x89PNG", image
    release_lease.sync(client=client, **address)
    refused = release_lease.sync(client=client, **address)
    assert isinstance(refused, Error) and refused.code.value == "not_in_use", refused
    info = get_info.sync(client=client)
    assert info and not isinstance(info, Error) and [node.instances for node in info.nodes] == [[]], info


if __name__ == "__main__":
    main(*sys.argv[1:])
