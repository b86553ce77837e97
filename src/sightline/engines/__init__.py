"""Engines: where and when the units of `shard_work` run. They know nothing of documents."""
