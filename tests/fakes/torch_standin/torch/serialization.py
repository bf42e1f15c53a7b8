def save(item, path):
    with open(path, "w") as file:  # noqa: PTH123
        file.write(str(item))
