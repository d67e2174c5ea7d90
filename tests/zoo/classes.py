"""Which of the library's classes stands for a model type."""

import importlib
import inspect

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto

from .configs import NotBuildable
from .overrides import CLASSES

_FURTHER = (  # where AutoModel has no entry, in this order
    "MODEL_FOR_PRETRAINING_MAPPING",
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    "MODEL_FOR_OBJECT_DETECTION_MAPPING",
    "MODEL_FOR_DEPTH_ESTIMATION_MAPPING",
    "MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING",
    "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING",
    "MODEL_FOR_BACKBONE_MAPPING",
    "MODEL_FOR_KEYPOINT_MATCHING_MAPPING",
    "MODEL_FOR_KEYPOINT_DETECTION_MAPPING",
    "MODEL_FOR_TABLE_RECOGNITION_MAPPING",
    "MODEL_FOR_IMAGE_MATTING_MAPPING",
    "MODEL_FOR_POSE_ESTIMATION_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "MODEL_FOR_DECISION_MAPPING",
)


def model_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """AutoModel's class for the config, else another Auto class's, else the tower's own."""
    if config.model_type in CLASSES:
        return getattr(transformers, CLASSES[config.model_type])
    for mapping in ("MODEL_MAPPING", *_FURTHER):
        found = getattr(modeling_auto, mapping).get(type(config), None)
        if found is not None:
            return found[0] if isinstance(found, tuple) else found
    return _tower(type(config))


def _tower(kind: type[PreTrainedConfig]) -> type[PreTrainedModel]:
    """The model class of the modelling file that is made from this very config."""
    try:
        module = importlib.import_module(kind.__module__.replace("configuration_", "modeling_"))
    except ImportError as error:
        raise NotBuildable(f"{kind.__name__} has no modelling file of its own: {error}") from None
    made = [
        found
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, PreTrainedModel)
        and getattr(found, "config_class", None) is kind
        and not found.__name__.endswith("PreTrainedModel")
        and found.forward is not torch.nn.Module.forward
    ]
    if not made:
        raise NotBuildable(f"{kind.__name__} is a part without a model class of its own")
    stem = kind.__name__.removesuffix("Config")
    return min(made, key=lambda found: (found.__name__ not in {stem, f"{stem}Model"}, len(found.__name__)))
