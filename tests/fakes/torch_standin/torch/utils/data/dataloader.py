class _BaseDataLoaderIter:
    def __init__(self, dataset):
        self._dataset = dataset
        self._left = iter(dataset)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._left)

    next = __next__
