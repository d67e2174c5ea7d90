"""A name in, a model that is ready to run out.

`source.find` says which folder is meant, `checkpoint.open_checkpoint` which weight files are in it,
`load.plan` what the model looks like, `load.load` brings in the layers that are needed, `text.encode`
makes its inputs. The first two import neither torch nor transformers, so that most mistakes are answered
at once. transformers' loading functions and the hub client are used here and nowhere else.
"""
