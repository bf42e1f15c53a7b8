"""Traces and profiles: schema, store, importers, fitting."""
