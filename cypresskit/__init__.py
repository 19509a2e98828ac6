"""cypresskit: the fastest matrix multiplication of AMD's Cypress GPU, running on a simulated Radeon HD 5870."""

from cypresskit.il import ILError, Program, assemble

__version__ = "0.1.0"

__all__ = ["ILError", "Program", "assemble"]
