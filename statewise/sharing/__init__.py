"""Trained models for others: folders, the Hugging Face hub, ONNX."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.sharing.card import model_card
    from statewise.sharing.hub import from_pretrained, push_to_hub
    from statewise.sharing.loading import load
    from statewise.sharing.onnx_check import check_onnx
    from statewise.sharing.onnx_export import export_onnx
    from statewise.train.best_model import load_run

__all__ = ["check_onnx", "export_onnx", "from_pretrained", "load", "load_run", "model_card", "push_to_hub"]

lazy_imports(__name__)
