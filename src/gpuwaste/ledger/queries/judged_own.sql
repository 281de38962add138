        -- Of own GPUs. What is unknown is in no class: quicker than adding up its reasons.
        own.alloc_ms AS alloc_ms,
        own.wasted_ms AS wasted_ms,
        own.alloc_ms - own.idle_ms - own.low_ms - own.moderate_ms - own.high_ms - own.suspended_ms - own.pending_ms AS unknown_ms
