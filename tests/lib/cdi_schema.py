#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cdi_schema.py FILE: whether a file is a specification by the rules of the Container Device Interface, version 0.6.0.

Written from the rules of its SPEC.md: which members there are, which must be there, their types and the forms of names.
Ends with status 1 and what is wrong.
"""
import json
import re
import sys

DOMAIN = r'[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*'
CLASS = r'[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?'
DEVICE = r'[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?'
VERSIONS = {'0.3.0', '0.4.0', '0.5.0', '0.6.0'}
STAGES = {'prestart', 'createRuntime', 'createContainer', 'startContainer', 'poststart', 'poststop'}


class Wrong(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def members(value, where, needed, more=()):
    demand(isinstance(value, dict), f'{where} is no object')
    for name in needed:
        demand(name in value, f'{where} has no {name}')
    for name in value:
        demand(name in needed or name in more, f'{where} has a member {name}')


def text(value, where):
    demand(isinstance(value, str) and value, f'{where} is no text')


def texts(value, where):
    demand(isinstance(value, list), f'{where} is no array')
    for one in value:
        text(one, where)


def each(edits, name, where):
    value = edits.get(name, [])
    demand(isinstance(value, list), f'{where}: {name} is no array')
    return value


def check_edits(edits, where):
    members(edits, where, (), ('env', 'deviceNodes', 'mounts', 'hooks'))
    demand(edits, f'{where} is empty')
    for variable in each(edits, 'env', where):
        text(variable, f'{where}: env')
        demand(re.fullmatch(r'[^=\0]+=[^\0]*', variable), f'{where}: env: {variable} is no NAME=VALUE')
    for mount in each(edits, 'mounts', where):
        members(mount, f'{where}: mount', ('hostPath', 'containerPath'), ('options', 'type'))
        for name in 'hostPath', 'containerPath':
            text(mount[name], f'{where}: {name}')
            demand(mount[name].startswith('/'), f'{where}: {name} is not absolute')
        texts(mount.get('options', []), f'{where}: options')
    for node in each(edits, 'deviceNodes', where):
        members(node, f'{where}: deviceNode', ('path', ),
                ('hostPath', 'type', 'major', 'minor', 'fileMode', 'permissions', 'uid', 'gid'))
        text(node['path'], f'{where}: path')
    for hook in each(edits, 'hooks', where):
        members(hook, f'{where}: hook', ('hookName', 'path'), ('args', 'env', 'timeout'))
        demand(hook['hookName'] in STAGES, f'{where}: {hook["hookName"]} is no hook')


def check(specification):
    members(specification, 'the specification', ('cdiVersion', 'kind', 'devices'), ('containerEdits', 'annotations'))
    demand(specification['cdiVersion'] in VERSIONS, f'version {specification["cdiVersion"]}')
    text(specification['kind'], 'kind')
    demand(re.fullmatch(f'{DOMAIN}/{CLASS}', specification['kind']), f'{specification["kind"]} is no VENDOR/CLASS')
    devices = specification['devices']
    demand(isinstance(devices, list) and devices, 'there is no device')
    names = set()
    for device in devices:
        members(device, 'a device', ('name', 'containerEdits'), ('annotations', ))
        text(device['name'], 'a name')
        demand(re.fullmatch(DEVICE, device['name']), f'{device["name"]} is no name of a device')
        demand(device['name'] not in names, f'{device["name"]} is there twice')
        names.add(device['name'])
        check_edits(device['containerEdits'], device['name'])
    if 'containerEdits' in specification:
        check_edits(specification['containerEdits'], 'the specification')


def main():
    try:
        with open(sys.argv[1], encoding='utf-8') as file:
            check(json.load(file))
    except (Wrong, json.JSONDecodeError) as why:
        sys.exit(f'{sys.argv[1]}: {why}')


if __name__ == '__main__':
    main()
