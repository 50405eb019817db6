"""What ``scripts/gpu_check.py`` is made of.

``command`` gives items to a ``worker`` process, which has a ``workbench`` (a GPU and a compiler
for it), and puts what comes back into ``results``; each kind of item is a module.
"""
