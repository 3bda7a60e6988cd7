"""Generalization bounds and certificates: how far can a network be trusted?"""
