"""From a model's name to a loaded model that is ready to run.

`source.find` finds the model's folder, `source.checkpoint.open_checkpoint` its weight files,
`loading.load.plan_model` builds it without weights, `load_model` loads the layers that are needed,
`inputs.text.encode` makes its inputs. The first two import neither torch nor transformers, so that most
mistakes are answered at once. transformers' loading functions and the hub client are used here alone.
"""
