"""Commands for containers, with the names that the log has (``kubectl``, events, ``docker inspect``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.model import FaultRecord
from analyzer.schema import NextStep, Value

_OF_EVENT = re.compile(r"\bin pod ([a-z0-9.-]+)_([a-z0-9-]+)\(")
# Names that Kubernetes allows: they stand in commands that a person copies into a shell.
_NAME = re.compile(r"^Name:\s+([a-z0-9.-]+)$")
_NAMESPACE = re.compile(r"^Namespace:\s+([a-z0-9-]+)$")
_SECTION = re.compile(r"^(?:Init )?Containers:$")
_CONTAINER = re.compile(r"^  ([a-z0-9][a-z0-9-]*):$")
_SAID = re.compile(r"\b[Cc]ontainer ([a-z0-9-]+) (?:failed|exceeded|definition|was)")
_DOCKER = re.compile(r'"Id": "([0-9a-f]{12})')


class Container(Value):
    """A container as the log names it; a placeholder where it does not."""

    pod: str = "<pod>"
    namespace: str | None = None
    name: str = "<container>"

    def of_pod(self) -> str:
        """The arguments that name the pod."""
        return self.pod if self.namespace is None else f"{self.pod} -n {self.namespace}"


def container_of(text: str, around: Sequence[str]) -> Container:
    """The one container that the text and the lines around it speak of; of several none is taken."""
    pods = {(found[1], found[2]) for line in around if (found := _OF_EVENT.search(line))}
    named = [found[1] for line in around if (found := _NAME.match(line.rstrip()))]
    spaces = [found[1] for line in around if (found := _NAMESPACE.match(line.rstrip()))]
    if not pods and len(named) == 1:
        pods = {(named[0], spaces[0] if len(spaces) == 1 else "")}
    pod, namespace = next(iter(pods)) if len(pods) == 1 else ("<pod>", "")
    said = _SAID.search(text)
    listed = _listed(around)
    name = said[1] if said else listed[0] if len(listed) == 1 else "<container>"
    return Container(pod=pod, namespace=namespace or None, name=name)


def previous_log_step(fault: FaultRecord, around: Sequence[str]) -> NextStep:
    """The output of a container that was restarted."""
    one = container_of(fault.text, around)
    why = "what the container printed before it ended: kubectl logs without it shows the one that runs now"
    return NextStep(command=f"kubectl logs {one.of_pod()} -c {one.name} --previous", why=why)


def limit_command(text: str, around: Sequence[str]) -> str:
    """The limit of a pod beside what it uses."""
    pod = container_of(text, around).of_pod()
    return f"kubectl describe pod {pod} | grep -A 3 Limits; kubectl top pod {pod} --containers"


def docker_command(around: Sequence[str]) -> str:
    """The limit of a container of Docker beside what it uses."""
    found = {one[1] for line in around if (one := _DOCKER.search(line))}
    name = found.pop() if len(found) == 1 else "<container>"
    return f"docker inspect -f '{{{{.HostConfig.Memory}}}}' {name}; docker stats --no-stream"


def _listed(around: Sequence[str]) -> list[str]:
    """Names below ``Containers:`` of ``kubectl describe``."""
    names: list[str] = []
    inside = False
    for line in around:
        if _SECTION.match(line.rstrip()):
            inside = True
        elif line[:1].strip():
            inside = False
        elif inside and (found := _CONTAINER.match(line.rstrip())):
            names.append(found[1])
    return names
