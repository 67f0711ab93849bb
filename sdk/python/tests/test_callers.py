"""Authentication of callers: certificates and tokens, and their rotation."""

import os
import pathlib
import queue
import subprocess
import tempfile
import unittest
import unittest.mock

import grpc

import hookloop
from hookloop.program import _parse
from tests.requests import invoke, serving, sync_request
from tests.test_server import WAIT, check, empty, make_certificate

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Authority:
    """Issues client certificates."""

    def __init__(self, folder, name):
        self.cert, self._key, self._folder = folder / f"{name}.crt", folder / f"{name}.key", folder
        openssl(
            "req",
            "-x509",
            *EC,
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-out",
            str(self.cert),
            "-keyout",
            str(self._key),
        )

    def issue(self, name):
        """Returns the key and the certificate of a client."""
        key, request, cert = (self._folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        openssl("req", *EC, "-subj", f"/CN={name}", "-out", str(request), "-keyout", str(key))
        openssl(
            "x509",
            "-req",
            "-in",
            str(request),
            "-CA",
            str(self.cert),
            "-CAkey",
            str(self._key),
            "-set_serial",
            "7",
            "-days",
            "2",
            "-out",
            str(cert),
        )
        return key.read_bytes(), cert.read_bytes()


def replace(file, content):
    new = file.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, file)


class Certificates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cert, key, self.ca = (self.folder / name for name in ("tls.crt", "tls.key", "ca.pem"))
        make_certificate(self.cert, key)
        self.engines, self.others = Authority(self.folder, "engines"), Authority(
            self.folder, "others"
        )
        replace(self.ca, self.engines.cert.read_bytes())
        self.server = hookloop.Server(
            hookloop.Composite(sync=empty),
            listen="127.0.0.1:0",
            tls_cert=str(self.cert),
            tls_key=str(key),
            client_ca=str(self.ca),
            client_name="engine",
        )
        self.server.start()
        self.addCleanup(self.server.stop, 0)

    def invoke(self, key=None, cert=None):
        """Returns the status code and the message for a client with a certificate."""
        secured = grpc.ssl_channel_credentials(self.cert.read_bytes(), key, cert)
        with grpc.secure_channel(self.server.address, secured) as channel:
            try:
                invoke(channel, "Sync", sync_request())
            except grpc.RpcError as error:
                return error.code(), error.details()
            return grpc.StatusCode.OK, ""

    def test_accepted_callers(self):
        self.assertEqual(self.invoke(*self.engines.issue("engine"))[0], grpc.StatusCode.OK)
        self.assertEqual(self.invoke()[0], grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.invoke(*self.others.issue("engine"))[0], grpc.StatusCode.UNAVAILABLE)
        code, text = self.invoke(*self.engines.issue("intruder"))
        self.assertEqual(
            (code, text),
            (
                grpc.StatusCode.UNAUTHENTICATED,
                "the caller's certificate is for ['intruder'], expected \"engine\"",
            ),
        )

    def test_authorities_rotate(self):
        before, after = self.engines.issue("engine"), self.others.issue("engine")
        self.assertEqual(self.invoke(*before)[0], grpc.StatusCode.OK)
        replace(self.ca, self.others.cert.read_bytes())
        self.assertEqual(self.invoke(*after)[0], grpc.StatusCode.OK)
        self.assertEqual(self.invoke(*before)[0], grpc.StatusCode.UNAVAILABLE)


class Secrets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "tokens"
        replace(self.file, b"first\nsecond\n")

    def code(self, channel, *values):
        try:
            invoke(
                channel,
                "Sync",
                sync_request(),
                metadata=[("authorization", value) for value in values],
            )
        except grpc.RpcError as error:
            self.assertNotIn("first", error.details())
            return error.code().name
        return "OK"

    def test_accepted_callers(self):
        with serving(hookloop.Composite(sync=empty), token_file=str(self.file)) as (channel, _):
            for values, code in (
                (["Bearer first"], "OK"),
                (["Bearer second"], "OK"),
                ([], "UNAUTHENTICATED"),
                (["Bearer third"], "UNAUTHENTICATED"),
                (["Bearer "], "UNAUTHENTICATED"),
                (["Bearer firs"], "UNAUTHENTICATED"),
                (["Basic first"], "UNAUTHENTICATED"),
                (["Bearer third", "Bearer first"], "UNAUTHENTICATED"),
            ):
                with self.subTest(values):
                    self.assertEqual(self.code(channel, *values), code)
            self.assertEqual(check(channel), 1, "probes need no token")

    def test_the_body_is_not_read(self):
        with serving(hookloop.Composite(sync=empty), token_file=str(self.file)) as (channel, _):
            for path in (
                "/hookloop.composite.v1.CompositeHookService/Sync",
                "/hookloop.stream.v1.HookStreamService/Connect",
            ):
                sent = queue.Queue()
                call = channel.stream_stream(path)(iter(sent.get, None), timeout=WAIT)
                with self.subTest(path), self.assertRaises(grpc.RpcError) as raised:
                    next(call)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                sent.put(None)

    def test_tokens_rotate(self):
        with serving(hookloop.Composite(sync=empty), token_file=str(self.file)) as (channel, _):
            replace(self.file, b"third")
            self.assertEqual(self.code(channel, "Bearer first"), "UNAUTHENTICATED")
            self.assertEqual(self.code(channel, "Bearer third"), "OK")
            with self.assertLogs("hookloop", "ERROR") as logged:
                replace(self.file, b"\n")
                self.assertEqual(
                    [self.code(channel, "Bearer ") for _ in range(2)], ["UNAVAILABLE"] * 2
                )
            self.assertEqual(len(logged.output), 1)
            replace(self.file, b"fourth")
            self.assertEqual(self.code(channel, "Bearer fourth"), "OK")


class Open(unittest.TestCase):
    def test_an_open_server_logs_a_warning(self):
        with self.assertLogs("hookloop", "WARNING") as logged:
            hookloop.Server(hookloop.Composite(sync=empty), listen="0.0.0.0:0").stop(0)
        with self.assertLogs("hookloop", "WARNING") as without_host:
            hookloop.Server(hookloop.Composite(sync=empty), listen=":0").stop(0)
        self.assertRegex(without_host.output[0], r"anyone who reaches \[::\]:\d+ can call the hook")
        self.assertRegex(
            logged.output[0],
            r"anyone who reaches 0\.0\.0\.0:\d+ can call the hook; set --client-ca or --token-file",
        )


class Flags(unittest.TestCase):
    def test_each_has_a_variable(self):
        variables = {
            "HOOKLOOP_HOOK_BUILD_ID": "b1",
            "HOOKLOOP_HOOK_CLIENT_CA": "ca.pem",
            "HOOKLOOP_HOOK_THREADS": "7",
        }
        with unittest.mock.patch.dict(os.environ, variables):
            options = _parse(["--client-name", "engine", "--token-file", "tokens"])
        self.assertEqual(
            (options.build_id, options.client_ca, options.threads), ("b1", "ca.pem", 7)
        )
        self.assertEqual((options.client_name, options.token_file), ("engine", "tokens"))
