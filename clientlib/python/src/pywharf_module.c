/* SPDX-License-Identifier: Apache-2.0 */
/* The module wharf._wharf: functions that need no client of one's own, and names. */
#include "clientlib/python/src/pywharf.h"

PyMODINIT_FUNC PyInit__wharf(void);

static PyObject *decompress(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct pywharf_client *client = pywharf_client_default(PyModule_GetState(module));

    return client ? pywharf_client_decompress(client, args, kwargs) : NULL;
}

static PyObject *decompress_batch(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct pywharf_client *client = pywharf_client_default(PyModule_GetState(module));

    return client ? pywharf_client_decompress_batch(client, args, kwargs) : NULL;
}

static PyObject *inflater(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return pywharf_inflater_new(PyModule_GetState(module), args, kwargs);
}

static PyObject *end(PyObject *module, PyObject *unused)
{
    (void)unused;
    pywharf_clients_end(PyModule_GetState(module));
    return Py_NewRef(Py_None);
}

static PyObject *forked(PyObject *module, PyObject *unused)
{
    (void)unused;
    pywharf_clients_forked(PyModule_GetState(module));
    return Py_NewRef(Py_None);
}

#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef functions[] = {
    {"decompress", WITH_KEYWORDS(decompress), METH_VARARGS | METH_KEYWORDS,
     "decompress(data, codec='gzip', *, out=None, size=None, exact_input=False,\n"
     "           exact_output=False, checksum=None, parameter=0, timeout=None, priority=None)\n\n"
     "Decodes one stream, and verifies it.\n\n"
     "data: contiguous memory: bytes-like, or an array with __dlpack__ or\n"
     "__cuda_array_interface__, of a GPU if its memory is GpuMemory; out or size is needed then.\n"
     "codec: name or number, see wharf.codecs.\n"
     "out: None, or writable contiguous memory, likewise, which then receives the bytes.\n"
     "size: the most bytes that may come out; None is what `out` holds, or no limit.\n"
     "exact_input: bytes after the stream are an error.  exact_output: fewer than fit are.\n"
     "checksum: CRC-32 that the output must have.  parameter: the codec's, as in wharf.h.\n"
     "timeout: seconds.  priority: 'interactive', 'normal' or 'background'.\n\n"
     "Returns bytes, or how many bytes `out` received.  Raises a wharf.Error (DataError when the\n"
     "data is bad), OSError when the daemon cannot be had or decodes on no GPU, ValueError and\n"
     "BufferError for arguments.\n"
     "After an error the bytes in `out` are undefined.  Other threads run meanwhile."},
    {"decompress_batch", WITH_KEYWORDS(decompress_batch), METH_VARARGS | METH_KEYWORDS,
     "decompress_batch(chunks, codec='gzip', *, outs=None, sizes=None, exact_input=False,\n"
     "                 exact_output=False, parameter=0, timeout=None, priority=None,\n"
     "                 errors='raise', threads=0)\n\n"
     "Decodes many chunks at once, on all cores or by the daemon.\n\n"
     "chunks: a sequence of what decompress takes.  outs: None, or a sequence of as many writable\n"
     "ones, of which none may overlap.  An array of n rows without gaps is such a sequence, and\n"
     "costs what one of its rows would.  sizes: None, a number for all, or a sequence.\n"
     "errors: 'raise' raises the first bad chunk's error, whose index says which it is; 'return'\n"
     "puts errors in the list.  threads: how many may decode; 0 is as many as pays.\n\n"
     "Returns a list with what decompress returns for each.  Every chunk is tried."},
    {"inflater", WITH_KEYWORDS(inflater), METH_VARARGS | METH_KEYWORDS,
     "inflater(wbits=15)\n\nAn Inflater.  wbits is zlib's: -8 to -15 raw Deflate, 8 to 15 or 0 "
     "zlib,\n"
     "24 to 31 gzip, 40 to 47 zlib or gzip."},
    {"detect", pywharf_detect, METH_VARARGS,
     "detect(head, /)\n\nWhat a file is that begins so: a tuple of the format's name, or 'empty' "
     "or\n"
     "'other', and the name of the format if it is a known one that wharf does not read."},
    {"bgzf_block", pywharf_bgzf_block, METH_O,
     "bgzf_block(head, /)\n\nBytes of the BGZF block that begins so; 0: there is none, -1: it "
     "takes\n"
     "more bytes to say."},
    {"_end", end, METH_NOARGS, NULL},
    {"_forked", forked, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_names(PyObject *module)
{
    PyObject *codecs = PyDict_New();
    int r = codecs ? 0 : -1;

    for (uint32_t i = 0; r == 0 && wharf_codec_name(i); i++) {
        PyObject *number = PyLong_FromUnsignedLong(i);

        r = number ? PyDict_SetItemString(codecs, wharf_codec_name(i), number) : -1;
        Py_XDECREF(number);
    }
    if (r == 0)
        r = PyModule_AddObjectRef(module, "codecs", codecs);
    Py_XDECREF(codecs);
    return r < 0 ? r : PyModule_AddStringConstant(module, "__version__", wharf_version());
}

static int exec_module(PyObject *module)
{
    struct pywharf_state *state = PyModule_GetState(module);

    if (pywharf_errors_init(module, state) < 0 || pywharf_client_init(module, state) < 0 ||
        pywharf_memory_init(module, state) < 0 || pywharf_gpu_init(module, state) < 0 ||
        pywharf_job_init(module, state) < 0 || pywharf_inflater_init(module, state) < 0 ||
        pywharf_stream_init(module) < 0 || pywharf_container_init(module) < 0 ||
        pywharf_index_init(module) < 0 || pywharf_packer_init(module) < 0)
        return -1;
    return add_names(module);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct pywharf_state *state = PyModule_GetState(module);

    for (int i = 0; i < PYWHARF_N_RESULTS; i++)
        Py_VISIT(state->errors[i]);
    Py_VISIT(state->error);
    Py_VISIT(state->data_error);
    Py_VISIT((PyObject *)state->client_type);
    Py_VISIT((PyObject *)state->memory_type);
    Py_VISIT((PyObject *)state->gpu_type);
    Py_VISIT((PyObject *)state->job_type);
    Py_VISIT((PyObject *)state->inflater_type);
    return 0;
}

/* Clients outlive a module that is collected while they are used: what they need of it stays. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "wharf._wharf",
    .m_doc = "libwharf for Python; import wharf instead.",
    .m_size = sizeof(struct pywharf_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
};

PyMODINIT_FUNC PyInit__wharf(void)
{
    return PyModuleDef_Init(&definition);
}
