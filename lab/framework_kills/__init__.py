"""Agents of frameworks whose workers are killed: no paid call is made again, no word is lost, memory and answers agree."""
