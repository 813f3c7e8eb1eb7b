#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kubernetes_plugin.py [--build FOLDER]: systemd/kubernetes/wharf-device-plugin beside a kubelet of the test's own.

The kubelet listens at a real socket, takes the registration, watches the devices, allocates some, and is started again,
when it removes the plugins' sockets as the real one does.  It lists what pods have at another socket.  The daemon is real, with the configuration that the plugin
prints.  Skipped without python3-grpcio.  Reports in the Test Anything Protocol.
"""
import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent import futures

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import private_daemon  # noqa: E402  pylint: disable=wrong-import-position
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position

try:
    import grpc
except ImportError:
    grpc = None
SOURCE = os.path.join(TOP, 'systemd', 'kubernetes')
N_SHARES = 3


class Kubelet:
    """Takes registrations, and follows the devices of each plugin that registers."""

    def __init__(self, folder, pb):
        self.folder, self.pb = folder, pb
        self.registered, self.listings = queue.Queue(), queue.Queue()
        for name in os.listdir(folder):
            os.unlink(f'{folder}/{name}')
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        handler = grpc.unary_unary_rpc_method_handler(self.register, request_deserializer=pb.RegisterRequest.FromString,
                                                      response_serializer=pb.Empty.SerializeToString)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('v1beta1.Registration',
                                                                                   {'Register': handler}), ))
        self.server.add_insecure_port(f'unix://{folder}/kubelet.sock')
        self.server.start()

    def register(self, request, _):
        self.registered.put(request)
        threading.Thread(target=self.watch, args=(request.endpoint, ), daemon=True).start()
        return self.pb.Empty()

    def channel(self, endpoint):
        return grpc.insecure_channel(f'unix://{self.folder}/{endpoint}')

    def call(self, endpoint, method, request, kind):
        with self.channel(endpoint) as channel:
            return channel.unary_unary(f'/v1beta1.DevicePlugin/{method}',
                                       request_serializer=lambda message: message.SerializeToString(),
                                       response_deserializer=kind.FromString)(request, timeout=wc.PATIENCE_S)

    def watch(self, endpoint):
        """None at the end of the stream."""
        try:
            with self.channel(endpoint) as channel:
                for listing in channel.unary_stream(
                        '/v1beta1.DevicePlugin/ListAndWatch', request_serializer=self.pb.Empty.SerializeToString,
                        response_deserializer=self.pb.ListAndWatchResponse.FromString)(self.pb.Empty()):
                    self.listings.put({device.ID: device.health for device in listing.devices})
        except grpc.RpcError:
            pass
        self.listings.put(None)

    def wait_for(self, health):
        """Until all devices are so."""
        while True:
            listing = self.listings.get(timeout=wc.PATIENCE_S)
            assert listing is not None, 'the plugin has ended the stream'
            assert set(listing) == {f'share-{number}' for number in range(N_SHARES)}, listing
            if set(listing.values()) == {health}:
                return

    def end(self):
        self.server.stop(None).wait()


class PodList:
    """The kubelet's list of what pods have, which the plugin asks for again and again."""

    def __init__(self, path, pb):
        self.pb, self.names, self.n_asked = pb, (), 0
        self.turn, self.during = threading.Condition(), None
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        handler = grpc.unary_unary_rpc_method_handler(self.answer, request_deserializer=pb.Empty.FromString,
                                                      response_serializer=lambda message: message.SerializeToString())
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('v1.PodResourcesLister',
                                                                                   {'List': handler}), ))
        self.server.add_insecure_port(f'unix://{path}')
        self.server.start()

    def answer(self, *_):
        listed = self.pb.ListPodResourcesResponse()
        with self.turn:
            names, during, self.during = self.names, self.during, None
            if during:
                during()
            containers = listed.pod_resources.add().containers
            containers.add().devices.add(resource_name='other.io/share', device_ids=['share-0', 'share-1', 'share-2'])
            for name in names:
                containers.add().devices.add(resource_name='wharf.io/share', device_ids=[name])
            self.n_asked += 1
            self.turn.notify_all()
        return listed

    def wait(self):
        """Until the plugin has done what follows from the present list: it asks one time after the other."""
        with self.turn:
            first = self.n_asked
            assert self.turn.wait_for(lambda: self.n_asked >= first + 2, wc.PATIENCE_S), 'the plugin does not ask'

    def show(self, *names):
        with self.turn:
            self.names = names
        self.wait()

    def call_during(self, function):
        """While the plugin waits for the answer, which was made before."""
        done = threading.Event()
        with self.turn:
            self.during = lambda: (function(), done.set())
        assert done.wait(wc.PATIENCE_S), 'the plugin does not ask'
        self.wait()


class Node:
    """The plugin, the daemon with its sockets, and the kubelet's folder."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        shutil.copy(f'{SOURCE}/wharf-device-plugin', folder)
        subprocess.run(['protoc', f'--proto_path={SOURCE}', f'--python_out={folder}', 'device_plugin.proto'], check=True)
        sys.path.insert(0, folder)
        import device_plugin_pb2  # pylint: disable=import-outside-toplevel,import-error
        self.pb = device_plugin_pb2
        os.mkdir(f'{folder}/kubelet')
        self.words = [f'{folder}/wharf-device-plugin', '--shares', str(N_SHARES), '--sockets', f'{folder}/sockets',
                      '--kubelet', f'{folder}/kubelet', '--weight', '300', '--pod-resources', f'{folder}/pods.sock',
                      '--interval', '0.1']
        self.plugin, self.daemon, self.kubelet, self.endpoint = None, None, None, None

    def start_daemon(self):
        printed = subprocess.run([*self.words, '--prepare'], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.daemon = private_daemon.Daemon(f'{self.build}/wharfd', sections=printed)

    def start_plugin(self, *more):
        self.plugin = subprocess.Popen([*self.words, *more])

    def end_plugin(self):
        self.plugin.send_signal(signal.SIGTERM)
        assert self.plugin.wait(wc.PATIENCE_S) == 0

    def start_kubelet(self):
        self.kubelet = Kubelet(f'{self.folder}/kubelet', self.pb)
        self.endpoint = self.kubelet.registered.get(timeout=wc.PATIENCE_S).endpoint
        self.kubelet.wait_for('Healthy')

    def allocate(self, *names):
        """The folders that containers get."""
        ask = self.pb.AllocateRequest()
        for name in names:
            ask.container_requests.add(devicesIDs=[name])
        answer = self.kubelet.call(self.endpoint, 'Allocate', ask, self.pb.AllocateResponse)
        return [given.mounts[0].host_path for given in answer.container_responses]

    def end(self):
        if self.plugin and self.plugin.poll() is None:
            self.plugin.kill()
            self.plugin.wait()
        if self.daemon:
            self.daemon.remove()


def share_is_a_socket_of_its_own(node):
    """What a container is given works, and is the tenant of the share with its weight; its death gives it back."""
    node.start_daemon()
    kubelet = Kubelet(f'{node.folder}/kubelet', node.pb)
    node.start_plugin()
    request = kubelet.registered.get(timeout=wc.PATIENCE_S)
    assert (request.version, request.resource_name) == ('v1beta1', 'wharf.io/share'), request
    kubelet.wait_for('Healthy')
    options = kubelet.call(request.endpoint, 'GetDevicePluginOptions', node.pb.Empty(), node.pb.DevicePluginOptions)
    assert not options.pre_start_required and not options.get_preferred_allocation_available
    ask = node.pb.AllocateRequest()
    for name in 'share-1', 'share-2':
        ask.container_requests.add(devicesIDs=[name])
    answer = kubelet.call(request.endpoint, 'Allocate', ask, node.pb.AllocateResponse)
    for number, given in enumerate(answer.container_responses, 1):
        mount, = given.mounts
        assert mount.read_only and mount.container_path == '/run/wharf', mount
        assert dict(given.envs) == {'WHARF_SOCKET': '/run/wharf/wharfd.sock'}, given.envs
        assert os.listdir(mount.host_path) == ['wharfd.sock'], 'the folder has more than the socket'
        client = wc.Client(f'{mount.host_path}/wharfd.sock')
        said = subprocess.run([f'{node.build}/wharf', 'status', '--json', '--socket', node.daemon.socket], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        assert f'"socket:share-{number}"' in said, said
        client.close()
    shown = subprocess.run([f'{node.build}/wharfd', '--show-config', '-c', node.daemon.config], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    assert re.search(r'share-1.*\n(?:.*\n)*?.*weight = 300', shown), shown
    kubelet.end()


def other_requests_are_refused(node):
    """Two shares, one that is not there, none."""
    kubelet = Kubelet(f'{node.folder}/kubelet', node.pb)
    request = kubelet.registered.get(timeout=wc.PATIENCE_S)
    for names in ['share-0', 'share-1'], ['share-9'], ['../x'], []:
        ask = node.pb.AllocateRequest()
        ask.container_requests.add(devicesIDs=names)
        try:
            kubelet.call(request.endpoint, 'Allocate', ask, node.pb.AllocateResponse)
            raise AssertionError(f'{names} was given')
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and 'one share' in error.details(), error
    kubelet.end()


def kubelet_that_starts_again_is_told_again(node):
    for _ in range(2):
        kubelet = Kubelet(f'{node.folder}/kubelet', node.pb)
        kubelet.registered.get(timeout=wc.PATIENCE_S)
        kubelet.wait_for('Healthy')
        kubelet.end()


def health_follows_the_daemon(node):
    kubelet = Kubelet(f'{node.folder}/kubelet', node.pb)
    kubelet.registered.get(timeout=wc.PATIENCE_S)
    kubelet.wait_for('Healthy')
    node.daemon.kill()
    kubelet.wait_for('Unhealthy')
    node.daemon.start()
    kubelet.wait_for('Healthy')
    kubelet.end()


def answers(folder):
    try:
        wc.Client(f'{folder}/wharfd.sock').close()
        return True
    except OSError:
        return False


def sockets_of_containers_that_ended_are_removed(node):
    """Through a folder that somebody kept there is no way either, not when its share is the next container's."""
    pods = PodList(f'{node.folder}/pods.sock', node.pb)
    node.start_kubelet()
    first, second = node.allocate('share-1', 'share-2')
    pods.wait()
    assert answers(first) and answers(second), 'what the list does not have yet was removed'
    pods.show('share-1', 'share-2')
    kept = os.open(first, os.O_PATH)
    assert answers(f'/proc/self/fd/{kept}')
    pods.show('share-2')
    assert not os.path.exists(first) and answers(second)
    assert not answers(f'/proc/self/fd/{kept}')
    assert node.allocate('share-1') == [first] and answers(first)
    assert not answers(f'/proc/self/fd/{kept}')
    os.close(kept)
    pods.show('share-2')
    assert answers(first), 'what was in an earlier list was held to be in one of this container'
    pods.show()
    assert not os.path.exists(second)
    pods.server.stop(None).wait()
    kept = os.open(first, os.O_PATH)
    assert node.allocate('share-1') == [first] and answers(first) and not answers(f'/proc/self/fd/{kept}')
    os.close(kept)
    node.kubelet.end()


def containers_outlive_the_plugin_and_the_daemon(node):
    """A plugin that starts again finds what it has given, and makes what a start of the machine has removed.  Nothing is
    removed by an answer that was made before it was given."""
    pods = PodList(f'{node.folder}/pods.sock', node.pb)
    node.start_kubelet()
    node.allocate('share-0', 'share-1', 'share-2')
    first, second, third = (f'{node.folder}/sockets/given/share-{number}' for number in range(N_SHARES))
    mounted = os.open(second, os.O_PATH)
    pods.show('share-1', 'share-2')
    node.end_plugin()
    node.kubelet.end()
    shutil.rmtree(third)
    node.daemon.kill()
    node.daemon.start()
    assert not answers(second)
    node.start_plugin('--grace', '0')
    node.start_kubelet()
    pods.wait()
    assert not os.path.exists(first) and answers(second) and answers(third)
    assert answers(f'/proc/self/fd/{mounted}'), 'the container has another folder than before'
    os.close(mounted)
    made = []

    def give():
        made.append(os.stat(node.allocate('share-0')[0]).st_ino)
        pods.names = 'share-0', 'share-1', 'share-2'
    pods.call_during(give)
    assert answers(first) and made == [os.stat(first).st_ino], 'an older answer closed it'
    pods.server.stop(None).wait()
    node.kubelet.end()


def it_ends_when_it_is_asked_to(node):
    """The stream ends, and the socket goes; it waits for a kubelet that is not there."""
    kubelet = Kubelet(f'{node.folder}/kubelet', node.pb)
    request = kubelet.registered.get(timeout=wc.PATIENCE_S)
    kubelet.wait_for('Healthy')
    node.end_plugin()
    while kubelet.listings.get(timeout=wc.PATIENCE_S) is not None:
        pass
    assert not os.path.exists(f'{node.folder}/kubelet/{request.endpoint}')
    kubelet.end()
    node.start_plugin()
    kubelet = Kubelet(f'{node.folder}/kubelet', node.pb)
    kubelet.registered.get(timeout=wc.PATIENCE_S)
    kubelet.end()


TESTS = (share_is_a_socket_of_its_own, other_requests_are_refused, kubelet_that_starts_again_is_told_again,
         health_follows_the_daemon, sockets_of_containers_that_ended_are_removed,
         containers_outlive_the_plugin_and_the_daemon, it_ends_when_it_is_asked_to)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    failed = 0
    print(f'1..{len(TESTS)}', flush=True)
    if not grpc:
        for number, test in enumerate(TESTS, 1):
            print(f'ok {number} - {test.__name__} # SKIP python3-grpcio is not installed')
        return 0
    with tempfile.TemporaryDirectory() as folder:
        node = Node(build, folder)
        try:
            for number, test in enumerate(TESTS, 1):
                word = 'ok'
                try:
                    test(node)
                except (AssertionError, queue.Empty) as error:
                    word, failed = 'not ok', failed + 1
                    print(re.sub('^', '# ', str(error) or repr(error), flags=re.M))
                print(f'{word} {number} - {test.__name__}', flush=True)
        finally:
            node.end()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
