"""The async client: `async with aio.serve(8) as farm, farm.lease() as session: await session.goto(…)`."""

from ._client_async import Farm, Session, serve

__all__ = ["Farm", "Session", "serve"]
