"""Rows in, text out: text, json, parsable, csv. Imports waste and below."""
