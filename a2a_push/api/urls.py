"""Addresses below `/api/v1/webhooks/`."""

from django.urls import path

from a2a_push.api.configs import ConfigEnable, ConfigList, ConfigOne
from a2a_push.api.deliveries import (
    DeliveryList,
    DeliveryOne,
    DeliveryReplay,
    DeliveryTryNow,
    Replay,
)
from a2a_push.api.receivers import ReceiverDisable, ReceiverEnable, ReceiverList, ReceiverOne

urlpatterns = [
    path("configs", ConfigList.as_view()),
    path("configs/<int:key>", ConfigOne.as_view()),
    path("configs/<int:key>/enable", ConfigEnable.as_view()),
    path("deliveries", DeliveryList.as_view()),
    path("deliveries/replay", Replay.as_view()),
    path("deliveries/<int:key>", DeliveryOne.as_view()),
    path("deliveries/<int:key>/try-now", DeliveryTryNow.as_view()),
    path("deliveries/<int:key>/replay", DeliveryReplay.as_view()),
    path("receivers", ReceiverList.as_view()),
    path("receivers/<int:key>", ReceiverOne.as_view()),
    path("receivers/<int:key>/enable", ReceiverEnable.as_view()),
    path("receivers/<int:key>/disable", ReceiverDisable.as_view()),
]
