"""The rules of plugin.h as cases that run: a program of its own, of the standard library alone, that loads one plugin and forks for
every case. running.main() is the program; validation.py starts it in a bare interpreter, which has loaded nothing that a plugin
could disturb or that makes forking slow. It prints a line of JSON per case: {"case", "rule", "outcome", "detail"}, the outcome
"holds", "broken" or "not asked".
"""
