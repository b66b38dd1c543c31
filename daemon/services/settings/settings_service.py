"""The settings service: lists and changes the settings of a running daemon."""

from __future__ import annotations

from collections.abc import Callable

from ....protocol.settings import ListSettings, PutSetting, SettingList
from ..service import Handlers, Service, owner
from .settings import Settings


class SettingsService(Service):
    """Answers `settings` and `put_setting`."""

    name = "settings"

    def __init__(self, settings: Settings, follow: Callable[[], None]) -> None:
        """`follow`: has every service follow the file if it changed."""
        self._settings, self._follow = settings, follow

    @property
    def handlers(self) -> Handlers:
        """Both on the slow lane."""
        return {ListSettings: owner("slow", self.list), PutSetting: owner("slow", self.put)}

    def list(self, request: ListSettings) -> SettingList:
        """List every setting in force. Raises BadConfig."""
        self._follow()
        return self._settings.list()

    def put(self, request: PutSetting) -> SettingList:
        """Write a setting into the file and follow it. Raises BadConfig, StorageFull."""
        self._settings.put(request.name, request.value)
        self._follow()
        return self._settings.list()
