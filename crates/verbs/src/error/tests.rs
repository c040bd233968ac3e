//! Error texts and kinds.

use super::*;
use rdmacm_core::{QpAttrMask, QpState, QpType};

fn refused(operation: Operation, command: CommandNumber, errno: i32) -> Error {
    Error::command(operation, command, &io::Error::from_raw_os_error(errno))
}

#[test]
fn an_error_names_operation_command_errno_and_cause() {
    let operation = Operation::ModifyQueuePair {
        number: 0x11,
        state: Some(QpState::RTS),
        mask: QpAttrMask::STATE | QpAttrMask::SQ_PSN,
    };
    assert_eq!(
        refused(operation, CommandNumber::MODIFY_QP, libc::EINVAL).to_string(),
        "move queue pair 0x11 to RTS (STATE | SQ_PSN) (MODIFY_QP): EINVAL: its state does \
         not allow this transition, attributes are missing or not allowed in it, or a value is \
         out of range"
    );
}

#[test]
fn changed_credentials_are_explained_for_any_command() {
    for (operation, command) in [
        (Operation::QueryPort(1), CommandNumber::QUERY_PORT),
        (
            Operation::CreateQueuePair(QpType::RC),
            CommandNumber::CREATE_QP,
        ),
    ] {
        let text = refused(operation, command, libc::EACCES).to_string();
        assert!(text.contains("EACCES: this process's credentials have changed"));
    }
}

#[test]
fn an_errno_without_a_known_cause_has_the_systems_text() {
    let error = refused(
        Operation::OpenContext,
        CommandNumber::GET_CONTEXT,
        libc::EPERM,
    );
    assert!(error.to_string().contains("EPERM: Operation not"));
}

#[test]
fn the_text_of_an_error_is_complete_and_has_no_source() {
    let device = || String::from("rxe0");
    let path = || PathBuf::from("/dev/there");
    let (errno, command) = (libc::EIO, CommandNumber::CREATE_CQ);
    let errors = [
        Error::NoNode { device: device() },
        Error::Driver {
            device: device(),
            driver: DriverId::RXE,
            abi_version: 9,
            known: vec![(DriverId::RXE, 2), (DriverId::SIW, 1)],
        },
        Error::ContextClosed { device: device() },
        Error::Gids {
            device: device(),
            port: 1,
            errno,
        },
        Error::Stray { number: 1 },
        Error::Map { errno },
        Error::Wait { errno },
        Error::open(&path(), &io::Error::from_raw_os_error(errno)),
        Error::OtherNode {
            path: path(),
            device: device(),
        },
        Error::Devices(rdmacm_core::Error::IdDestroyed),
        refused(Operation::OpenContext, command, libc::EPERM),
        refused(Operation::OpenContext, command, libc::EIO),
        Error::invalid(Operation::OpenContext, "a reason"),
        Error::answer(Operation::OpenContext, command, "a reason"),
    ];
    for error in errors {
        assert!(std::error::Error::source(&error).is_none(), "{error:?}");
        let text = error.to_string();
        let refused = PostError::new(error.clone(), ());
        assert_eq!(refused.to_string(), text);
        assert!(std::error::Error::source(&refused).is_none(), "{text}");
        let wrapped = io::Error::from(error);
        assert_eq!(wrapped.to_string(), text);
        assert!(std::error::Error::source(&wrapped).is_none(), "{text}");
    }
}

/// Each of these errnos has a likely cause that contains this text.
#[track_caller]
fn assert_causes(operation: Operation, causes: &[(i32, &str)]) {
    for (errno, text) in causes {
        let error = refused(operation, CommandNumber::CREATE_QP, *errno);
        let Error::Command(command) = &error else {
            panic!("{error:?}")
        };
        match command.cause() {
            Some(cause) => assert!(cause.contains(text), "{errno}: {cause}"),
            None => assert_eq!(*text, "", "{errno}: {error}"),
        }
    }
}

#[test]
fn each_known_cause_is_explained() {
    let other = (libc::ENOTTY, "");
    assert_causes(
        Operation::CreateProtectionDomain,
        &[
            (libc::EACCES, "credentials have changed"),
            (libc::EIO, "device is gone"),
            (libc::EAGAIN, "control group"),
            (libc::EMFILE, "no file descriptor"),
            (libc::ENFILE, "no file descriptor"),
            other,
        ],
    );
    assert_causes(
        Operation::QueryPort(9),
        &[(libc::EINVAL, "no port of this number"), other],
    );
    assert_causes(
        Operation::CreateCompletionQueue { entries: 0 },
        &[
            (libc::EINVAL, "at least 1 completion"),
            (libc::EINVAL, "its completion vector must exist"),
            other,
        ],
    );
    assert_causes(
        Operation::ResizeCompletionQueue { entries: 9 },
        &[(libc::EOPNOTSUPP, "cannot resize"), other],
    );
    assert_causes(
        Operation::Register { length: 1 },
        &[
            (libc::ENOMEM, "locked memory"),
            (libc::EFAULT, "no memory at this address"),
            (libc::EINVAL, "access flags"),
            other,
        ],
    );
    assert_causes(
        Operation::ChangeAccess,
        &[
            (libc::EACCES, "not registered for writing"),
            (libc::EOPNOTSUPP, "cannot change a registration"),
            other,
        ],
    );
    assert_causes(
        Operation::Send,
        &[
            (libc::EINVAL, "not connected"),
            (libc::ENOTCONN, "not connected"),
            other,
        ],
    );
    assert_causes(
        Operation::CreateQueuePair(QpType::RC),
        &[
            (libc::EINVAL, "beyond the device's limits"),
            (libc::EOPNOTSUPP, "no queue pairs of this type"),
            other,
        ],
    );
    let modify = Operation::ModifyQueuePair {
        number: 1,
        state: None,
        mask: QpAttrMask::QKEY,
    };
    assert_causes(
        modify,
        &[
            (libc::EINVAL, "its state does not allow"),
            (libc::EOPNOTSUPP, "does not support all"),
            (libc::EPERM, "CAP_NET_RAW"),
            other,
        ],
    );
}

#[test]
fn each_cause_of_a_failed_open_or_wait_is_explained() {
    for (errno, text) in [
        (libc::ENOENT, "missing here"),
        (libc::EACCES, "0666"),
        (libc::EPERM, "another network namespace"),
        (libc::EMFILE, "no file descriptor"),
        (libc::EIO, "would not open"),
    ] {
        let error = Error::open(Path::new("/dev/x"), &io::Error::from_raw_os_error(errno));
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(error.raw_os_error(), Some(errno));
    }
    for (errno, text) in [
        (libc::ENFILE, "no file descriptor"),
        (libc::EPROTO, "incomplete record"),
        (libc::EIO, "failed to create or poll"),
    ] {
        let error = Error::wait(errno).to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn each_error_has_its_io_kind() {
    use io::ErrorKind as Kind;
    let (operation, command) = (Operation::Arm, CommandNumber::CREATE_QP);
    let gone = Error::ContextClosed {
        device: "rxe0".to_owned(),
    };
    assert!(gone.is_context_closed() && !Error::wait(libc::EIO).is_context_closed());
    let other = Error::OtherNode {
        path: "/dev/x".into(),
        device: "rxe0".to_owned(),
    };
    let partial = Error::command(operation, command, &Kind::WriteZero.into());
    assert!(partial.to_string().contains("part"), "{partial}");
    let numberless = Error::command(operation, command, &Kind::Other.into());
    assert!(numberless.to_string().contains("number"), "{numberless}");
    for (error, kind) in [
        (gone, Kind::NotConnected),
        (other, Kind::InvalidData),
        (partial, Kind::InvalidData),
        (Error::invalid(operation, "no"), Kind::InvalidInput),
    ] {
        assert_eq!(io::Error::from(error.clone()).kind(), kind, "{error}");
    }
}

#[test]
fn an_io_error_keeps_kind_and_source() {
    let operation = Operation::CreateCompletionQueue { entries: 0 };
    let error = refused(operation, CommandNumber::CREATE_CQ, libc::EINVAL);
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(
        error
            .to_string()
            .starts_with("create a completion queue of 0")
    );
    let device = String::from("rxe0");
    let gone = io::Error::from(Error::NoNode { device });
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
}
