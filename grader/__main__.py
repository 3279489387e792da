"""python -m grader serve"""

import sys


def main() -> int:
    if sys.argv[1:] == ["serve"]:
        from grader.server import main as serve

        return serve()
    print("usage: python -m grader serve   (JSON lines on stdin and stdout; people use triton-prep)", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
