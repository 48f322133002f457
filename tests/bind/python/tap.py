"""TAP for the tests of the Python package."""

count = 0


def ok(good, name):
    """Prints one TAP line."""
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)


def raises(kind, name, function, *arguments, **named):
    """One test: the call raises `kind`. Returns the exception, or None."""
    try:
        function(*arguments, **named)
    except kind as e:
        ok(True, name)
        return e
    except BaseException as e:
        ok(False, f"{name}: {e!r}")
        return None
    ok(False, f"{name}: nothing was raised")
    return None
