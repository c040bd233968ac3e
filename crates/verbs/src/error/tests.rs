//! What errors say.

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
         not allow this, the attributes are too many or too few for it, or a value is out of \
         range"
    );
}

#[test]
fn changed_credentials_are_explained_whatever_was_asked() {
    for (operation, command) in [
        (Operation::QueryPort(1), CommandNumber::QUERY_PORT),
        (
            Operation::CreateQueuePair(QpType::RC),
            CommandNumber::CREATE_QP,
        ),
    ] {
        let words = refused(operation, command, libc::EACCES).to_string();
        assert!(words.contains("EACCES: this process's credentials have changed"));
    }
}

#[test]
fn an_errno_without_a_known_cause_gets_the_systems_words() {
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
        Error::Gone { device: device() },
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
        Error::Devices(rdmacm_core::Error::IdGone),
        refused(Operation::OpenContext, command, libc::EPERM),
        refused(Operation::OpenContext, command, libc::EIO),
        Error::invalid(Operation::OpenContext, "a reason"),
        Error::answer(Operation::OpenContext, command, "a reason"),
    ];
    for error in errors {
        assert!(std::error::Error::source(&error).is_none(), "{error:?}");
        let words = error.to_string();
        let refused = PostError::new(error.clone(), ());
        assert_eq!(refused.to_string(), words);
        assert!(std::error::Error::source(&refused).is_none(), "{words}");
        let wrapped = io::Error::from(error);
        assert_eq!(wrapped.to_string(), words);
        assert!(std::error::Error::source(&wrapped).is_none(), "{words}");
    }
}

/// Each of these numbers, as the answer to this, is told in these words.
#[track_caller]
fn told(operation: Operation, causes: &[(i32, &str)]) {
    for (errno, words) in causes {
        let error = refused(operation, CommandNumber::CREATE_QP, *errno);
        let Error::Command(command) = &error else {
            panic!("{error:?}")
        };
        match command.cause() {
            Some(cause) => assert!(cause.contains(words), "{errno}: {cause}"),
            None => assert_eq!(*words, "", "{errno}: {error}"),
        }
    }
}

#[test]
fn every_known_cause_is_told_in_words() {
    let other = (libc::ENOTTY, "");
    told(
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
    told(
        Operation::QueryPort(9),
        &[(libc::EINVAL, "no port of this number"), other],
    );
    told(
        Operation::CreateCompletionQueue { entries: 0 },
        &[(libc::EINVAL, "at least 1 completion"), other],
    );
    told(
        Operation::ResizeCompletionQueue { entries: 9 },
        &[(libc::EOPNOTSUPP, "keep their size"), other],
    );
    told(
        Operation::Register { length: 1 },
        &[
            (libc::ENOMEM, "locked memory"),
            (libc::EFAULT, "no memory at this address"),
            (libc::EINVAL, "access flags"),
            other,
        ],
    );
    told(
        Operation::ChangeAccess,
        &[
            (libc::EACCES, "not registered for writing"),
            (libc::EOPNOTSUPP, "the driver cannot"),
            other,
        ],
    );
    told(
        Operation::Send,
        &[
            (libc::EINVAL, "not connected"),
            (libc::ENOTCONN, "not connected"),
            other,
        ],
    );
    told(
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
    told(
        modify,
        &[
            (libc::EINVAL, "its state does not allow"),
            (libc::EOPNOTSUPP, "does not know all"),
            (libc::EPERM, "CAP_NET_RAW"),
            other,
        ],
    );
}

#[test]
fn what_a_node_or_a_wait_fails_by_is_told_in_words() {
    for (errno, words) in [
        (libc::ENOENT, "missing here"),
        (libc::EACCES, "0666"),
        (libc::EPERM, "another network namespace"),
        (libc::EMFILE, "no file descriptor"),
        (libc::EIO, "would not open"),
    ] {
        let error = Error::open(Path::new("/dev/x"), &io::Error::from_raw_os_error(errno));
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.raw_os_error(), Some(errno));
    }
    for (errno, words) in [
        (libc::ENFILE, "no file descriptor"),
        (libc::EPROTO, "half a thing"),
        (libc::EIO, "would not make or poll"),
    ] {
        let error = Error::wait(errno).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn each_error_has_its_io_kind() {
    use io::ErrorKind as Kind;
    let (operation, command) = (Operation::Arm, CommandNumber::CREATE_QP);
    let gone = Error::Gone {
        device: "rxe0".to_owned(),
    };
    assert!(gone.is_gone() && !Error::wait(libc::EIO).is_gone());
    let other = Error::OtherNode {
        path: "/dev/x".into(),
        device: "rxe0".to_owned(),
    };
    let half = Error::command(operation, command, &Kind::WriteZero.into());
    assert!(half.to_string().contains("part"), "{half}");
    let numberless = Error::command(operation, command, &Kind::Other.into());
    assert!(numberless.to_string().contains("number"), "{numberless}");
    for (error, kind) in [
        (gone, Kind::NotConnected),
        (other, Kind::InvalidData),
        (half, Kind::InvalidData),
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
