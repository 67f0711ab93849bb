"""Says what a hook says."""

# if the hook stands
NAME = "# what"
TEXT = """
what
"""


def sync():
    '''Where it's told, it is told.'''
    return 'it\'s # what'
