# SPDX-License-Identifier: Apache-2.0
"""Bars as an SVG picture, with nothing but the standard library."""
import html
import math

WIDTH, LEFT, RIGHT, TOP, BAR, GAP, LEGEND = 760, 92, 70, 34, 15, 14, 20


def text(x, y, words, anchor='start', size=12, weight='normal'):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}">{html.escape(words)}</text>')


def steps(most):
    """Round numbers from 0 on, four to eight of them."""
    step = 10.0 ** math.floor(math.log10(most))
    step = next(step * part for part in (0.2, 0.5, 1) if most / (step * part) <= 8)
    return [i * step for i in range(int(most / step) + 1)]


def decades(least, most):
    return [10.0 ** i for i in range(math.floor(math.log10(least)), math.floor(math.log10(most)) + 1)]


def bars(title, groups, series, values, number, logarithmic=False, left=LEFT):
    """A bar for each of the series in each group, with its number at its end.  series: {name:
    colour}; values: {(group, series): number}; what is missing has no bar.  left: room for groups' names."""
    most = max(values.values())
    marks = decades(min(values.values()), most) if logarithmic else steps(most)
    top = TOP + LEGEND * ((len(series) + 2) // 3) + 16
    height = top + len(groups) * (len(series) * BAR + GAP) + 8

    def at(value):
        part = (math.log(value / marks[0]) / math.log(most / marks[0]) if logarithmic
                else value / most)
        return left + (WIDTH - left - RIGHT) * part

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" fill="#222">',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
             text(12, 22, title, size=14, weight='bold')]
    for i, (name, colour) in enumerate(series.items()):
        x, y = 12 + i % 3 * 245, TOP + LEGEND * (i // 3)
        parts += [f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>',
                  text(x + 17, y + 10, name)]
    for mark in marks:
        parts += [f'<line x1="{at(mark):.1f}" x2="{at(mark):.1f}" y1="{top}" y2="{height - 8}" '
                  'stroke="#ddd"/>', text(at(mark), top - 4, f'{mark:g}', 'middle', 10)]
    for row, group in enumerate(groups):
        y = top + GAP / 2 + row * (len(series) * BAR + GAP)
        parts.append(text(left - 8, y + len(series) * BAR / 2 + 4, group, 'end'))
        for i, (name, colour) in enumerate(series.items()):
            value = values.get((group, name))
            if value is None:
                continue
            parts += [f'<rect x="{left}" y="{y + i * BAR:.1f}" width="{at(value) - left:.1f}" '
                      f'height="{BAR - 2}" fill="{colour}"/>',
                      text(at(value) + 4, y + i * BAR + 11, number(value), size=10)]
    return '\n'.join([*parts, '</svg>', ''])
