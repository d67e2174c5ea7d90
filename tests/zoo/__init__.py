"""Tiny, sharpened models of every model type of the installed transformers, with inputs."""

from .configs import NotBuildable, model_types
from .specimen import Specimen, build

__all__ = ["NotBuildable", "Specimen", "build", "model_types"]
