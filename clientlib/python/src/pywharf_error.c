/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions: one class for each result of libwharf, and OSError for calls that failed. */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct class
{
    const char *name;
    int is_data;             /* under wharf.DataError */
    PyObject *const *beside; /* a builtin exception that it is as well, or NULL */
    const char *doc;
};

static int add_class(PyObject *module, struct pywharf_state *state, int result,
                     const struct class *class)
{
    PyObject *first = class->is_data ? state->data_error : state->error;
    PyObject *bases =
        class->beside ? PyTuple_Pack(2, first, *class->beside) : PyTuple_Pack(1, first);
    char name[64];

    if (!bases)
        return -1;
    snprintf(name, sizeof(name), "wharf.%s", class->name);
    state->errors[result] = PyErr_NewExceptionWithDoc(name, class->doc, bases, NULL);
    Py_DECREF(bases);
    if (!state->errors[result])
        return -1;
    return PyModule_AddObjectRef(module, class->name, state->errors[result]);
}

static int add_bases(PyObject *module, struct pywharf_state *state)
{
    PyObject *bases;

    state->error = PyErr_NewExceptionWithDoc(
        "wharf.Error",
        "A job that did not end well.\n\n"
        "result, reason: str, names as in wharf_result.h, such as 'bad_data' and\n"
        "'deflate_distance_too_far'.\n"
        "bit: int, where in the data it stands, in bits from the first one on.\n"
        "index: int, which chunk of a batch it was, or None.",
        NULL, NULL);
    if (!state->error)
        return -1;
    bases = PyTuple_Pack(2, state->error, PyExc_ValueError);
    if (!bases)
        return -1;
    state->data_error = PyErr_NewExceptionWithDoc(
        "wharf.DataError", "The data is not what it should be.", bases, NULL);
    Py_DECREF(bases);
    if (!state->data_error || PyModule_AddObjectRef(module, "Error", state->error) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "DataError", state->data_error);
}

int pywharf_errors_init(PyObject *module, struct pywharf_state *state)
{
    const struct class classes[PYWHARF_N_RESULTS] = {
        [WHARF_BAD_DATA] = {"BadDataError", 1, NULL, "The data breaks its format or is cut off."},
        [WHARF_OUTPUT_TOO_SMALL] = {"OutputTooSmallError", 1, NULL,
                                    "More comes out than `out` or `size` allow."},
        [WHARF_OUTPUT_SHORT] = {"OutputShortError", 1, NULL,
                                "Less comes out than exact_output asks for."},
        [WHARF_BAD_CHECKSUM] = {"BadChecksumError", 1, NULL,
                                "A checksum or length does not match."},
        [WHARF_UNSUPPORTED] = {"UnsupportedError", 1, NULL, "Valid, but wharf cannot decode it."},
        [WHARF_CANCELLED] = {"CancelledError", 0, NULL, "The job was cancelled."},
        [WHARF_DEADLINE] = {"DeadlineError", 0, &PyExc_TimeoutError, "The job's time was over."},
        [WHARF_QUOTA] = {"QuotaError", 0, NULL, "The daemon does not allow this user the job."},
        [WHARF_NO_MEMORY] = {"NoMemoryError", 0, &PyExc_MemoryError, "No memory for the job."},
        [WHARF_DEVICE_FAULT] = {"DeviceFaultError", 0, NULL, "The GPU failed under the job."},
        [WHARF_INTERNAL] = {"InternalError", 0, NULL, "A fault of wharf's own."},
        [WHARF_BAD_REQUEST] = {"BadRequestError", 0, &PyExc_ValueError, "The job makes no sense."},
        [WHARF_FILE_ERROR] = {"FileError", 0, &PyExc_OSError,
                              "A file that the job names could not be read or written."},
    };

    if (add_bases(module, state) < 0)
        return -1;
    for (int i = WHARF_OK + 1; i < PYWHARF_N_RESULTS; i++)
        if (add_class(module, state, i, &classes[i]) < 0)
            return -1;
    return 0;
}

/* Sets an attribute to a value that it takes over. */
static int set(PyObject *exception, const char *name, PyObject *value)
{
    int r = value ? PyObject_SetAttrString(exception, name, value) : -1;

    Py_XDECREF(value);
    return r;
}

PyObject *pywharf_outcome_error(struct pywharf_state *state, const struct wharf_outcome *outcome,
                                Py_ssize_t index)
{
    PyObject *class = outcome->result < PYWHARF_N_RESULTS ? state->errors[outcome->result] : NULL;
    PyObject *exception;
    char which[40] = "";

    if (index >= 0)
        snprintf(which, sizeof(which), "chunk %" PRIdMAX ": ", (intmax_t)index);
    PyObject *text = outcome->reason == WHARF_REASON_NONE
                         ? PyUnicode_FromFormat("%s%s", which, wharf_result_string(outcome->result))
                         : PyUnicode_FromFormat("%s%s: %s, at bit %llu", which,
                                                wharf_result_string(outcome->result),
                                                wharf_reason_string(outcome->reason),
                                                (unsigned long long)outcome->bit_offset);
    if (!text)
        return NULL;
    exception = PyObject_CallFunctionObjArgs(class ? class : state->error, text, NULL);
    Py_DECREF(text);
    if (!exception)
        return NULL;
    if (set(exception, "result", PyUnicode_FromString(wharf_result_name(outcome->result))) < 0 ||
        set(exception, "reason", PyUnicode_FromString(wharf_reason_name(outcome->reason))) < 0 ||
        set(exception, "bit", PyLong_FromUnsignedLongLong(outcome->bit_offset)) < 0 ||
        set(exception, "index", index < 0 ? Py_NewRef(Py_None) : PyLong_FromSsize_t(index)) < 0)
        Py_CLEAR(exception);
    return exception;
}

PyObject *pywharf_call_error(int error, const char *message)
{
    PyObject *class = error == -ENOMEM                      ? PyExc_MemoryError
                      : error == -EINVAL || error == -E2BIG ? PyExc_ValueError
                                                            : PyExc_OSError;

    if (!message || !*message)
        message = "libwharf: the call failed";
    return class == PyExc_OSError ? PyObject_CallFunction(class, "is", -error, message)
                                  : PyObject_CallFunction(class, "s", message);
}

PyObject *pywharf_raise(PyObject *exception)
{
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *pywharf_raise_call(int error)
{
    return pywharf_raise(pywharf_call_error(error, wharf_error_message()));
}
