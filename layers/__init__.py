"""Scapy layers for every RoCE header."""
