-- Devices and their time by the level of each device's mean.
    [
        sum(level_devices[1]), sum(level_devices[2]), sum(level_devices[3]), sum(level_devices[4]), sum(level_devices[5])
    ]::BIGINT[] AS level_devices,
    [sum(level_ms[1]), sum(level_ms[2]), sum(level_ms[3]), sum(level_ms[4]), sum(level_ms[5])]::BIGINT[] AS level_ms
