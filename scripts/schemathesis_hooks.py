"""Hooks for schemathesis: most well-formed requests get a valid lease, so that they reach a browser, and random waits are
shortened."""

import json
import random
import threading

import requests
import schemathesis

LEASE = threading.Lock()
held = {}


def take(base, headers):
    """Return a valid lease, which is kept for the next call."""
    with LEASE:
        lease = held.get(base)
        if lease and requests.get(base + "/probe", params=lease, headers=headers, timeout=60).status_code == 200:
            return lease
        answer = requests.post(base + "/get", params={"wait_secs": 20}, headers=headers, timeout=60)
        held[base] = answer.json() if answer.status_code == 200 else None
        return held[base]


def shorten(body):
    """Shorten sleeps to a time that a test can afford."""
    command = body.get("command", body)
    if isinstance(command, dict) and isinstance(command.get("sleep"), dict):
        duration = command["sleep"].get("duration")
        if isinstance(duration, (int, float)) and not isinstance(duration, bool) and duration > 0.1:
            command["sleep"]["duration"] = 0.1


def waits_long(seconds):
    """Return whether the farm would accept this wait but it is too long for a test."""
    try:
        return 1 < float(seconds) <= 3600
    except (TypeError, ValueError):
        return False


@schemathesis.hook
def before_call(ctx, case, kwargs):
    query = case.query if isinstance(case.query, dict) else None
    if query is not None and waits_long(query.get("wait_secs")):
        query["wait_secs"] = 1
    body = case.body if isinstance(case.body, dict) else None
    if body is not None:
        shorten(body)
    mode = getattr(getattr(case.meta, "generation", None), "mode", None)
    positive = mode is not None and mode.value == "positive"
    if not positive or random.random() < 0.2:
        return
    base = case.operation.base_url.rstrip("/")
    headers = {"x-api-key": "default_key"}
    for target in (query, body):
        if target is not None and "instance_id" in target:
            lease = take(base, headers)
            if lease:
                target.update({name: lease[name] for name in lease if name in target})


@schemathesis.hook
def after_call(ctx, case, response):
    """Release what a random /get leased, because the farm has only three slots."""
    if not case.path.endswith("/get") or response.status_code != 200:
        return
    base = case.operation.base_url.rstrip("/")
    requests.post(base + "/reset", params=response.json(), headers={"x-api-key": "default_key"}, timeout=60)
