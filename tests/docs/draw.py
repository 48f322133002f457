#!/usr/bin/env python3
"""Draws declarations and functions of the whole tree by a seed, for a reader to restate.

usage: draw.py SEED [COUNT]            prints signature, comment and place, without code; of a member, its type's too
       draw.py SEED [COUNT] --code     prints the code of each, to compare with what the reader said

Functions, types, fields, macros and tables of C, C++, Java and OpenCL, functions of Lua, Perl and Python.
Each has the same chance, headers of old ABIs in tests/outside/frozen apart. The comment is the one directly
before it, or behind it: on its line, on a later line of a prototype, behind the { of a Perl function. For a C
function without one that is not static, it is that of its prototype in a header.
"""
import random
import re
import subprocess
import sys

COMMENT = re.compile(r'/\*(.*?)\*/', re.S)
# A line that declares one member or more, up to a comment; the name is that of the first.
MEMBER = re.compile(r'    (?:(?:const|volatile|_Atomic|unsigned|signed|long|struct|enum|union|private|public|static|final) )*'
                    r'\w+[ *]+(?:const[ *]+)*(\w+)(?: ?[,:\[][^()=]*)?;\s+/\*')
NO_NAMES = {'char', 'short', 'int', 'long', 'float', 'double', 'void', 'signed', 'unsigned', 'struct', 'enum', 'union',
            'const', 'volatile'}
C = re.compile(r'\.(c|h|cl|cpp|hpp|java)$')
SCRIPT = {'lua': ('--', re.compile(r'^\s*(?:local )?function ([\w.:]+)\(')),
          'py': ('#', re.compile(r'^\s*def (\w+)\(')),
          'pl': ('#', re.compile(r'^sub (\w+)')), 'pm': ('#', re.compile(r'^sub (\w+)')), 't': ('#', re.compile(r'^sub (\w+)'))}


def c_items(lines):
    """Yields (line, name): functions with a body, prototypes, types, macros and commented members."""
    for i, line in enumerate(lines):
        function = re.match(r'(?:static |extern |inline |const |unsigned |struct |enum )*[\w_*]+[ *]+(\w+)\([^;]*$', line)
        prototype = re.match(r'(?:extern |const |struct )*[\w_*]+[ *]+(\w+)\(.*', line)
        member = MEMBER.match(line)
        kind = re.match(r'(?:typedef )?(?:struct|enum) (\w+) \{', line) or re.match(r'#define (\w+)\(', line)
        found = function or prototype or kind or member
        macro = found and found.group(1).isupper() and not kind  # a macro's use, as in `table NAME(isa) = {`
        if found and not macro and found.group(1) not in NO_NAMES and \
                not line.startswith(('return', 'else', 'if', 'for', 'while', 'switch')):
            yield i, found.group(1)


def words_of(text):
    """The words of a C comment, on one line."""
    return re.sub(r'\s+', ' ', re.sub(r'\n\s*\*(?=\s|$)', '\n', text)).strip()


def code_of(line):
    """A line of C without its comments."""
    return re.sub(r'/\*.*', '', COMMENT.sub('', line))


def prototype_end(lines, i):
    """The last line of the prototype that begins in line i; None: it is no prototype."""
    if '(' not in code_of(lines[i]) or not re.match(r'\w', lines[i]):
        return None
    for k in range(i, min(i + 12, len(lines))):
        code = code_of(lines[k]).rstrip()
        if '{' in code or code.endswith(';'):
            return k if '{' not in code else None
    return None


def comment_behind(lines, i):
    """The comment that begins in line i, which may end in a later one; "": there is none."""
    found = COMMENT.search('\n'.join(lines[i:i + 12]))
    return words_of(found.group(1)) if found and found.start() < len(lines[i]) else ''


def comment_of(lines, i, is_c, mark):
    """The comment behind line i, or directly before it, or behind a later line of a prototype;
    "": there is none."""
    behind = comment_behind(lines, i) if is_c else ''
    if behind:
        return behind
    before = comment_before(lines, i, is_c, mark)
    end = prototype_end(lines, i) if is_c and not before else None
    if end is not None and end > i:
        return next(filter(None, (comment_behind(lines, k) for k in range(i + 1, end + 1))), '')
    behind = re.match(r'sub \w+\s*\{\s*#\s*(.*)', lines[i]) if mark == '#' else None
    return f'{before} {behind.group(1)}'.strip() if behind else before


def comment_before(lines, i, is_c, mark):
    """The comment directly before line i; of Python, the docstring instead."""
    k = i - 1
    if is_c and k >= 0 and lines[k].startswith('template <'):
        k -= 1
    if is_c and k >= 0 and lines[k].lstrip().startswith('//') and 'clang-format' not in lines[k]:
        is_c, mark = False, '//'
    while is_c and k >= 0 and re.match(r'\s*/[*/] clang-format (on|off)\b', lines[k]):
        k -= 1
    out = []
    if is_c and k >= 0 and lines[k].rstrip().endswith('*/'):
        while k >= 0:
            out.insert(0, lines[k])
            if '/*' in lines[k]:
                break
            k -= 1
        text = '\n'.join(out)
        return '' if lines[k].lstrip()[:2] != '/*' else words_of(text.replace('/*', '').replace('*/', ''))
    if mark == '#' and re.match(r'\s*def ', lines[i]):
        text = re.search(r'"""(.*?)"""', ' '.join(lines[i:i + 30]).split('def ', 2)[1])
        return re.sub(r'\s+', ' ', text.group(1)) if text else ''
    while not is_c and k >= 0 and lines[k].strip().startswith(mark):
        out.insert(0, lines[k].strip().lstrip(mark).strip())
        k -= 1
    return ' '.join(out)


def signature_of(lines, i, is_c):
    """The declaration that begins in line i, up to its body; before a member, its type and that type's comment."""
    text = ''
    for line in lines[i:i + 12]:
        text += ' ' + (code_of(line) if is_c else line)
        if re.search(r'[{;)]\s*$' if is_c else r'[){:]', text):
            break
    text = re.sub(r'\s+', ' ', text.split('{')[0] if is_c else text).strip()[:300]
    if not is_c or not MEMBER.match(lines[i]):
        return text
    for k in range(i - 1, max(i - 80, 0), -1):
        kind = re.match(r'(?:typedef )?(?:struct|enum|union) (\w+) \{', lines[k])
        if kind:
            return f'{text}   in {kind.group(1)} ({comment_of(lines, k, True, "")})'
        if lines[k].startswith('}'):
            break
    return text


def all_items():
    """Every item of the tree: (path, line index, name, lines)."""
    items = []
    for path in subprocess.run(['git', 'ls-files'], capture_output=True, text=True, check=True).stdout.split():
        ending = path.rsplit('.', 1)[-1]
        if path.startswith('tests/outside/frozen/') or (not C.search(path) and ending not in SCRIPT):
            continue
        lines = open(path, errors='replace').read().split('\n')
        if C.search(path):
            items += [(path, i, name, lines) for i, name in c_items(lines)]
        else:
            items += [(path, i, m.group(1), lines) for i, line in enumerate(lines) if (m := SCRIPT[ending][1].match(line))]
    return items


def main():
    words = [w for w in sys.argv[1:] if w != '--code']
    if not words or not all(w.isdigit() for w in words):
        sys.exit(__doc__)
    items = all_items()
    headers = {}  # comments of prototypes by name
    for path, i, name, lines in items:
        if path.endswith('.h') and prototype_end(lines, i) is not None and not headers.get(name):
            headers[name] = comment_of(lines, i, True, '')
    count = int(words[1]) if len(words) > 1 else 100
    for n, (path, i, name, lines) in enumerate(sorted(random.Random(int(words[0])).sample(items, count), key=lambda x: x[:2]), 1):
        ending = path.rsplit('.', 1)[-1]
        print(f'{n}. {path}:{i + 1} {name}')
        if '--code' in sys.argv:
            end = next((k for k in range(i, min(i + 40, len(lines))) if lines[k].startswith(('}', 'end'))), i + 12)
            print('\n'.join(lines[i:end + 1]) + '\n')
        else:
            print('   ' + signature_of(lines, i, bool(C.search(path))))
            comment = comment_of(lines, i, bool(C.search(path)), SCRIPT.get(ending, ('',))[0])
            is_static = not C.search(path) or lines[i].startswith('static ')
            print('   # ' + (comment or ('' if is_static else headers.get(name, ''))))
    print(f'# drawn from {len(items)} declarations and functions', file=sys.stderr)


main()
