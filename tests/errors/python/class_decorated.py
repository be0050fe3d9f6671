import fusec


@fusec.elementwise
class Point:
    pass
