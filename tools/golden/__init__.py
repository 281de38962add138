"""Golden answers: a made site is asked all that can be read of it, and each answer is compared with a kept one."""
